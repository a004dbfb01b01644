//! The terminal screen: state in, frame out.
