//! Faults, restores, key rotation, logs, privacy, tenancy and answers.

mod answers;
mod faults;
mod key_rotation;
mod logs;
mod privacy;
mod raw_texts;
mod readable_log;
mod redrive;
mod restore;
mod tenancy;
