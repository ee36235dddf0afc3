//! The text of a key: `mk_`, 256 random bits in base62, and a checksum that tells a mistyped
//! key from an unknown one. Knows nothing of scopes or of the store.

/// What every key of ours begins with.
pub const PREFIX: &str = "mk_";
/// How much of a key lists show.
pub const SHOWN: usize = PREFIX.len() + 8;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY: usize = 43;
const CHECK: usize = 6;

/// A key's text. Shown once to whoever asked for it; printed by no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(…)")
    }
}

impl KeyText {
    /// A new key from the operating system's randomness.
    ///
    /// # Errors
    /// When the operating system has none to give.
    pub fn mint() -> std::io::Result<Self> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
        Ok(Self::from_bytes(bytes))
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        let body = base62(&bytes, BODY);
        let check = checksum(&body);
        Self(format!("{PREFIX}{body}{check}"))
    }

    /// Takes text as it was read from a file; not checked.
    pub fn from_file(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The whole text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What lists show of it.
    pub fn prefix(&self) -> String {
        self.0.chars().take(SHOWN).collect()
    }

    /// What is stored in its place.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.0)
    }
}

/// BLAKE3 over the whole text, as keys are stored and looked up.
pub fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Whether text has the form of a key of ours and its checksum is right.
pub fn is_well_formed(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(PREFIX) else {
        return false;
    };
    if rest.len() != BODY + CHECK || !rest.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return false;
    }
    let (body, check) = rest.split_at(BODY);
    checksum(body) == check
}

fn checksum(body: &str) -> String {
    let digest = blake3::hash(body.as_bytes());
    base62(&digest.as_bytes()[..4], CHECK)
}

/// The bytes as one big-endian number in base 62, padded to a width.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut out = vec![b'0'; width];
    for place in out.iter_mut().rev() {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *place = BASE62[rest as usize];
    }
    out.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_is_well_formed_and_no_two_are_alike() {
        let one = KeyText::mint().unwrap();
        let two = KeyText::mint().unwrap();
        assert!(is_well_formed(one.expose()), "{}", one.expose());
        assert_eq!(one.expose().len(), 3 + BODY + CHECK);
        assert_ne!(one, two);
        assert_ne!(one.hash(), two.hash());
        assert_eq!(one.prefix().len(), SHOWN);
        assert_eq!(format!("{one:?}"), "KeyText(…)");
    }

    #[test]
    fn every_bit_of_the_key_is_in_its_text() {
        assert_eq!(
            KeyText::from_bytes([0; 32]).expose().len(),
            KeyText::from_bytes([255; 32]).expose().len()
        );
        // 62^43 is larger than 2^256, so the largest number fits without wrapping.
        let most = base62(&[255; 32], BODY);
        assert!(most.as_bytes()[0] != b'0', "{most}");
        let mut low = [0; 32];
        low[31] = 61;
        assert!(base62(&low, BODY).ends_with("0z"));
    }

    #[test]
    fn a_mistyped_key_is_told_from_an_unknown_one() {
        let key = KeyText::mint().unwrap();
        let mut typo = key.expose().to_owned();
        let last = if typo.ends_with('a') { 'b' } else { 'a' };
        typo.pop();
        typo.push(last);
        assert!(!is_well_formed(&typo));
        for text in ["", "mk_", "mk_short", "sk_abc", &"x".repeat(300), "mk_é"] {
            assert!(!is_well_formed(text), "{text:?}");
        }
    }
}
