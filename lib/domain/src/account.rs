//! The temporary password of a new client. The application keeps the account and gets only the password's hash.

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

/// Bytes of randomness that [`TempPassword::generate`] takes.
pub const PASSWORD_RANDOM_BYTES: usize = 64;
pub const SALT_BYTES: usize = 16;

const GROUPS: usize = 4;
const GROUP_CHARS: usize = 4;
/// Without 0 and O, 1, l and I: a client reads the password off a mail and types it.
const ALPHABET: &[u8; 54] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ234567";

/// A password that the client must change at the first sign-in: 16 characters in groups of four, 92 bits of randomness.
#[derive(Clone)]
pub struct TempPassword(Zeroizing<String>);
crate::discreet! { TempPassword }

impl TempPassword {
    pub fn generate(random: &[u8; PASSWORD_RANDOM_BYTES]) -> Self {
        let mut text = Zeroizing::new(String::with_capacity(GROUPS * (GROUP_CHARS + 1)));
        for (i, chunk) in random.chunks_exact(4).take(GROUPS * GROUP_CHARS).enumerate() {
            if i > 0 && i % GROUP_CHARS == 0 {
                text.push('-');
            }
            let value = u32::from_be_bytes(chunk.try_into().expect("chunks of four bytes"));
            text.push(char::from(ALPHABET[value as usize % ALPHABET.len()]));
        }
        Self(text)
    }

    pub fn restore(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text that the client types.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the argon2id hash in PHC form. Of OWASP's equally strong settings, 7 MiB, 5 passes and 1 lane need the
    /// least memory: many hashes may run at once. Takes tens of milliseconds of CPU.
    pub fn hash(&self, salt: [u8; SALT_BYTES]) -> String {
        const MEMORY_KIB: u32 = 7 * 1024;
        const PASSES: u32 = 5;
        const LANES: u32 = 1;
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("OWASP's parameters are within argon2's");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash = argon2.hash_password_with_salt(self.0.as_bytes(), &salt);
        hash.expect("a short password and a salt of 16 bytes hash").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::password_hash::PasswordVerifier;
    use argon2::password_hash::phc::PasswordHash;

    #[test]
    fn a_password_is_four_groups_and_its_hash_verifies() {
        let password = TempPassword::generate(&std::array::from_fn(|i| (i * 37 % 251) as u8));
        assert_eq!(password.expose().len(), 19);
        assert!(password.expose().split('-').all(|group| group.len() == 4));
        let phc = password.hash([7; SALT_BYTES]);
        // Computed by another implementation: argon2-cffi, which binds the reference one.
        let (settings, salt) = ("$argon2id$v=19$m=7168,t=5,p=1", "BwcHBwcHBwcHBwcHBwcHBw");
        assert_eq!(phc, format!("{settings}${salt}$jDp1ZIo7TcRzH9y2TEq1ylO7iMsjJ6HhOqpf+OshK0k"));
        let parsed = PasswordHash::new(&phc).unwrap();
        assert!(Argon2::default().verify_password(password.expose().as_bytes(), &parsed).is_ok());
        assert!(Argon2::default().verify_password(b"else", &parsed).is_err());
    }
}
