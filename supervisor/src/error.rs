//! One error type for the command line: what went wrong, and the exit code that says whose fault it is.

use crate::run::attempt::AttemptError;
use crate::rundir::RecordError;
use crate::rundir::durable::DiskError;

/// Exit codes of design section 11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, every method completed; or the verdict is positive.
    Success,
    /// Done, but some method failed; or the verdict is negative.
    Negative,
    /// Wrong usage or input; nothing was started.
    Usage,
    /// Could not finish or judge: our side failed.
    Infrastructure,
    /// Stopped by a signal, or somebody cancelled it.
    Interrupted,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Usage => 2,
            Self::Infrastructure => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command gave up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Input is wrong; nothing was started.
    #[error("{0}")]
    Input(String),
    /// Input that the protocol crate refused.
    #[error("{0}")]
    Refused(#[from] proctor_protocol::input::InputError),
    /// Our side failed.
    #[error("{0}")]
    Infrastructure(String),
    /// A file of a run directory or bundle cannot be used.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// A durable write failed.
    #[error("{error}{advice}", error = .0, advice = .0.advice())]
    Disk(#[from] DiskError),
    /// Writing to stdout failed for another reason than a reader who left.
    #[error("could not write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl From<AttemptError> for Error {
    fn from(error: AttemptError) -> Self {
        match error {
            AttemptError::Disk(error) => Self::Disk(error),
            AttemptError::Record(error) => Self::Record(error),
            other @ (AttemptError::Bug { .. } | AttemptError::Superseded { .. }) => {
                Self::Infrastructure(other.to_string())
            }
        }
    }
}

impl Error {
    /// An [`Error::Input`] of this text.
    pub fn input(text: impl Into<String>) -> Self {
        Self::Input(text.into())
    }

    /// The exit code it stands for.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Input(_) | Self::Refused(_) | Self::Record(RecordError::NoRun { .. }) => {
                Exit::Usage
            }
            Self::Infrastructure(_) | Self::Record(_) | Self::Disk(_) | Self::Output(_) => {
                Exit::Infrastructure
            }
        }
    }
}
