//! The text of a key: a prefix that says what it is for, 256 random bits, and a checksum that
//! tells a mistyped key from an unknown one. Knows nothing of scopes or of the store.

/// What a key looks like. The forms of Relay are those that its broker expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `mk_` and base62: keys for people, agents, workers and daemons.
    Key,
    /// `enr_` and base62: an enrolment token.
    Enrolment,
    /// `rk_live_` and hexadecimal: the workspace key of a Relay broker.
    RelayWorkspace,
    /// `nt_live_` and hexadecimal: the node token of a Relay broker.
    RelayNode,
    /// `at_live_` and hexadecimal: the token of an agent under a Relay broker.
    RelayAgent,
    /// `ses_` and base62: what a browser that signed in has in its cookie.
    Session,
}

impl Form {
    const ALL: [Form; 6] = [
        Form::Key,
        Form::Enrolment,
        Form::RelayWorkspace,
        Form::RelayNode,
        Form::RelayAgent,
        Form::Session,
    ];

    /// What texts of this form begin with.
    pub fn prefix(self) -> &'static str {
        match self {
            Form::Key => "mk_",
            Form::Enrolment => "enr_",
            Form::RelayWorkspace => "rk_live_",
            Form::RelayNode => "nt_live_",
            Form::RelayAgent => "at_live_",
            Form::Session => "ses_",
        }
    }

    fn is_hex(self) -> bool {
        match self {
            Form::Key | Form::Enrolment | Form::Session => false,
            Form::RelayWorkspace | Form::RelayNode | Form::RelayAgent => true,
        }
    }

    /// Length of the random part.
    fn body(self) -> usize {
        if self.is_hex() { HEX_BODY } else { BODY }
    }
}

/// How many characters behind its prefix lists show of a key.
const SHOWN: usize = 8;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY: usize = 43;
const CHECK: usize = 6;
const HEX_BODY: usize = 64;
const HEX_CHECK: usize = 8;

/// A key's text. Shown once to whoever asked for it; printed by no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(…)")
    }
}

impl KeyText {
    /// A new key of the common form from the operating system's randomness.
    ///
    /// # Errors
    /// When the operating system has none to give.
    pub fn mint() -> std::io::Result<Self> {
        Self::mint_as(Form::Key)
    }

    /// A new key of some form.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn mint_as(form: Form) -> std::io::Result<Self> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
        Ok(Self::from_bytes(form, bytes))
    }

    fn from_bytes(form: Form, bytes: [u8; 32]) -> Self {
        let body = if form.is_hex() {
            hex(&bytes)
        } else {
            base62(&bytes, BODY)
        };
        let check = checksum(form, &body);
        Self(format!("{}{body}{check}", form.prefix()))
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
        let known = Form::ALL
            .iter()
            .find(|form| self.0.starts_with(form.prefix()));
        let prefix = known.map_or(0, |form| form.prefix().len());
        self.0.chars().take(prefix + SHOWN).collect()
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
    let Some((form, rest)) = Form::ALL
        .iter()
        .find_map(|form| Some((*form, text.strip_prefix(form.prefix())?)))
    else {
        return false;
    };
    let check = if form.is_hex() { HEX_CHECK } else { CHECK };
    if rest.len() != form.body() + check || !rest.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return false;
    }
    let (body, check) = rest.split_at(form.body());
    checksum(form, body) == check
}

fn checksum(form: Form, body: &str) -> String {
    let digest = blake3::hash(body.as_bytes());
    let digest = &digest.as_bytes()[..4];
    if form.is_hex() {
        hex(digest)
    } else {
        base62(digest, CHECK)
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash that [`hex`] wrote.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
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
        assert_eq!(one.prefix().len(), 3 + SHOWN);
        assert_eq!(format!("{one:?}"), "KeyText(…)");
    }

    #[test]
    fn each_form_is_told_by_its_prefix() {
        for form in Form::ALL {
            let key = KeyText::mint_as(form).unwrap();
            let rest = key.expose().strip_prefix(form.prefix()).unwrap();
            assert!(is_well_formed(key.expose()), "{form:?}");
            assert_eq!(key.prefix().len(), form.prefix().len() + SHOWN);
            for other in Form::ALL {
                let passed = is_well_formed(&format!("{}{rest}", other.prefix()));
                assert_eq!(
                    passed,
                    form.is_hex() == other.is_hex(),
                    "{form:?} as {other:?}"
                );
            }
        }
        let relay = KeyText::mint_as(Form::RelayNode).unwrap();
        let rest = &relay.expose()["nt_live_".len()..];
        assert!(rest.bytes().all(|b| b.is_ascii_hexdigit()), "{rest}");
    }

    #[test]
    fn every_bit_of_the_key_is_in_its_text() {
        assert_eq!(
            KeyText::from_bytes(Form::Key, [0; 32]).expose().len(),
            KeyText::from_bytes(Form::Key, [255; 32]).expose().len()
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
