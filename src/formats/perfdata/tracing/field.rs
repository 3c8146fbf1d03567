//! A field of a tracepoint's payload, as a format description tells it.

/// A field of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) kind: Kind,
    /// Bytes of one element: of an array, or all of the field.
    pub(super) element: usize,
    pub(super) is_signed: bool,
    pub(super) is_pointer: bool,
    pub(super) is_long: bool,
    /// An array of characters or bytes.
    pub(super) is_string: bool,
}

/// Where the bytes of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number.
    Scalar,
    /// In the field itself, several elements.
    Array,
    /// Elsewhere in the payload: the field has length and offset (`__data_loc`).
    Dynamic,
    /// The same with the offset counted from the field's end (`__rel_loc`).
    Relative,
}

impl Kind {
    pub(super) fn is_dynamic(self) -> bool {
        matches!(self, Self::Dynamic | Self::Relative)
    }
}
