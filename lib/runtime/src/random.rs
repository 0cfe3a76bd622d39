//! The one place that draws random bytes.

/// `N` bytes from the operating system's generator.
///
/// # Panics
/// If the operating system provides no randomness: nothing that this service does is safe without.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
