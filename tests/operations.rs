//! Faults, restores, key rotation, logs, privacy, tenancy, answers and their golden file.

mod answers;
mod cursors;
mod faults;
mod golden;
mod key_rotation;
mod logs;
mod privacy;
mod raw_texts;
mod readable_log;
mod redrive;
mod restore;
mod tenancy;
