//! Rooms with real processes.
fn main() {
    proctor_supervisor::room::stage::main_if_stage();
    let t = std::time::Instant::now();
    println!("{:#?} {:?}", proctor_supervisor::room::probe(), t.elapsed());
}
