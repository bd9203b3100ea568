//! What would give this machine the rung or the protection it lacks.

use std::fs;
use std::path::Path;

use super::Rung;

/// What of a machine decides between remedies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is found out by itself")]
struct Facts {
    root: bool,
    container: bool,
    apparmor: bool,
    clone_off: bool,
    no_namespaces: bool,
}

impl Facts {
    fn of_this_machine() -> Self {
        let setting = |path: &str, value: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        Self {
            root: nix::unistd::geteuid().is_root(),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|path| Path::new(path).exists()),
            apparmor: setting(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1",
            ),
            clone_off: setting("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            no_namespaces: setting("/proc/sys/user/max_user_namespaces", "0"),
        }
    }

    fn namespaces(self) -> &'static str {
        if self.container {
            "start the container with `--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
        } else if self.root {
            "give this process the capability CAP_SYS_ADMIN, and let nothing above it filter unshare and clone"
        } else if self.no_namespaces {
            "as root: `sysctl -w user.max_user_namespaces=15000`"
        } else if self.clone_off {
            "as root: `sysctl -w kernel.unprivileged_userns_clone=1`"
        } else if self.apparmor {
            "as root: load an AppArmor profile for this program, `profile proctor /path/to/proctor flags=(unconfined) { userns, }`, or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        } else {
            "run proctor as root, or on a kernel with user namespaces (CONFIG_USER_NS)"
        }
    }

    fn groups(self) -> &'static str {
        if self.container {
            "start the container with `--cgroupns private` and a writable /sys/fs/cgroup (`--privileged`, or `-v /sys/fs/cgroup:/sys/fs/cgroup:rw`)"
        } else if self.root {
            "start proctor with `systemd-run --scope -p Delegate=yes -- proctor ...`, on a machine with cgroup2 (`systemd.unified_cgroup_hierarchy=1` on the kernel's command line)"
        } else {
            "start proctor with `systemd-run --user --scope -p Delegate=yes -- proctor ...`; without a login session first `loginctl enable-linger $USER`"
        }
    }
}

/// What would give this machine a rung that it does not have.
pub fn for_rung(rung: Rung) -> String {
    // K4 is K3a and K3b together: where one of them works, only the other is to be had.
    let works = |other| super::trial(other).is_ok();
    let rung = match rung {
        Rung::K4 if works(Rung::K3a) => Rung::K3b,
        Rung::K4 if works(Rung::K3b) => Rung::K3a,
        other => other,
    };
    rung_remedy(Facts::of_this_machine(), rung)
}

fn rung_remedy(facts: Facts, rung: Rung) -> String {
    match rung {
        Rung::K4 => format!("{}; {}", facts.namespaces(), facts.groups()),
        Rung::K3a => facts.namespaces().to_owned(),
        Rung::K3b => facts.groups().to_owned(),
        Rung::K1 | Rung::K0 => "nothing special is needed: make sure that the temporary directory can be written and programs in /proc can be read".to_owned(),
    }
}

/// What would give this machine a protection that it does not have; `None` where nothing but another rung does.
pub fn for_guard(name: &str) -> Option<String> {
    guard_remedy(Facts::of_this_machine(), name)
}

fn guard_remedy(facts: Facts, name: &str) -> Option<String> {
    match name {
        "network" | "file_system" | "disk" | "private_proc" | "ptrace" | "signals"
        | "parent_death" => Some(facts.namespaces().to_owned()),
        "memory" | "process_count" => Some(facts.groups().to_owned()),
        "system_calls" | "cpu_set" => {
            Some("use a kernel with system call filters (CONFIG_SECCOMP_FILTER)".to_owned())
        }
        "user" => Some("run proctor as root".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_fits_the_machine() {
        let user = Facts::default();
        let apparmor = Facts {
            apparmor: true,
            ..user
        };
        assert!(rung_remedy(apparmor, Rung::K3a).contains("AppArmor profile"));
        let off = Facts {
            clone_off: true,
            ..user
        };
        assert!(rung_remedy(off, Rung::K3a).contains("kernel.unprivileged_userns_clone=1"));
        assert!(
            rung_remedy(user, Rung::K3b).contains("systemd-run --user --scope -p Delegate=yes")
        );
        let container = Facts {
            root: true,
            container: true,
            ..user
        };
        let both = rung_remedy(container, Rung::K4);
        assert!(both.contains("--cap-add SYS_ADMIN") && both.contains("--cgroupns private"));
        assert_eq!(
            guard_remedy(user, "user").as_deref(),
            Some("run proctor as root")
        );
        assert_eq!(guard_remedy(user, "umask"), None);
    }
}
