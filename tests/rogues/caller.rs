//! Tries to reach the machine and the world: tcp and udp to its first argument, an abstract socket of the name of its
//! second, and kinds of sockets that no method needs; then scores everything.
//! Honest report: `completed`; nobody was reached.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use proctor_tests::misdeed::{system_call, tried};
use proctor_tests::talk::Talk;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .expect("an address");
    let name = arguments.next().expect("a name");
    let outside = SocketAddr::from(([192, 0, 2, 1], 80));
    for address in [address, outside] {
        let wait = Duration::from_millis(500);
        tried(
            &format!("tcp to {address}"),
            TcpStream::connect_timeout(&address, wait),
        );
        let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", address));
        tried(&format!("udp to {address}"), sent);
    }
    let name = UnixAddress::from_abstract_name(name).expect("a name");
    tried("abstract socket", UnixStream::connect_addr(&name));
    for (what, family, kind) in [
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM),
        ("kernel cryptography", libc::AF_ALG, libc::SOCK_SEQPACKET),
        ("raw packets", libc::AF_PACKET, libc::SOCK_RAW),
        ("raw ip", libc::AF_INET, libc::SOCK_RAW),
    ] {
        let made = system_call(libc::SYS_socket, [family.into(), kind.into(), 1, 0]);
        tried(what, made);
    }
    // Within a network namespace the kernel may be asked, but there is nothing to hear.
    let _ = system_call(
        libc::SYS_socket,
        [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), 0, 0],
    );
    let links = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    for line in links.lines().filter(|line| line.contains(':')) {
        proctor_tests::misdeed::tell(&format!(
            "interface: {}",
            line.split(':').next().unwrap_or_default().trim()
        ));
    }
    Talk::open("caller").behave();
}
