pub(crate) mod node;
