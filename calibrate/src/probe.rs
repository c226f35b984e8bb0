//! Looks for a GPU and what is needed to use it, and says in one sentence what is missing.
//!
//! Nothing of CUDA is needed to build or run this: libraries are opened by name and asked for the
//! few functions that answer the question.
#![allow(unsafe_code, reason = "foreign functions of libraries opened at run time")]

use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_uint};
use std::path::PathBuf;

/// Oldest driver whose interface has everything that is needed: CUDA 12.8.
pub const DRIVER_NEEDED: i32 = 12_080;

/// A card.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Gpu {
    /// As the driver calls it.
    pub name: String,
    /// Compute capability.
    pub compute: (i32, i32),
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Memory not in use, bytes, where the management library tells.
    pub free_bytes: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "status")]
pub enum Status {
    /// No driver library.
    NoDriver,
    /// The driver does not answer.
    DriverFails {
        /// What it said.
        code: i32,
    },
    /// The driver is too old.
    DriverTooOld {
        /// Its version.
        have: i32,
    },
    /// A driver, but no card.
    NoDevice,
    /// A library besides the driver's is missing.
    MissingLibrary {
        /// Which.
        which: Vec<String>,
        /// The driver's version.
        driver: i32,
        /// Cards.
        gpus: Vec<Gpu>,
    },
    /// Everything is there.
    Ready {
        /// The driver's version.
        driver: i32,
        /// Cards.
        gpus: Vec<Gpu>,
    },
}

impl Status {
    /// One plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let version = |v: i32| format!("{}.{}", v / 1000, v % 1000 / 10);
        match self {
            Self::NoDriver => "No NVIDIA driver is installed (libcuda was not found); the CPU, \
                 endpoints and imports work without one."
                .into(),
            Self::DriverFails { code } => format!(
                "The NVIDIA driver is installed but does not start (error {code}); `nvidia-smi` \
                 usually says why."
            ),
            Self::DriverTooOld { have } => format!(
                "The NVIDIA driver is too old: it speaks CUDA {}, and {} is needed; install \
                 driver 570 or later.",
                version(*have),
                version(DRIVER_NEEDED)
            ),
            Self::NoDevice => "The NVIDIA driver is installed but sees no device; check the card, \
                 CUDA_VISIBLE_DEVICES and the container's GPU option."
                .into(),
            Self::MissingLibrary { which, .. } => format!(
                "A device is there, but {} is missing; install the CUDA toolkit or set \
                 BATCHSIM_CUDA_LIB to the folder that has it.",
                which.join(" and ")
            ),
            Self::Ready { driver, gpus } => format!(
                "{} device{} ready, driver for CUDA {}.",
                gpus.len(),
                if gpus.len() == 1 { " is" } else { "s are" },
                version(*driver)
            ),
        }
    }
}

/// Where a library is looked for, besides where the system does; a test hands in its own.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Folders, searched first.
    pub folders: Vec<PathBuf>,
    /// Whether the system's own search is left out.
    pub only: bool,
}

impl Places {
    /// `BATCHSIM_CUDA_LIB`, `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`.
    #[must_use]
    pub fn of_environment() -> Self {
        let mut folders = Vec::new();
        if let Some(own) = std::env::var_os("BATCHSIM_CUDA_LIB") {
            folders.push(PathBuf::from(own));
        }
        for home in ["CUDA_HOME", "CUDA_PATH"] {
            folders.extend(std::env::var_os(home).map(|h| PathBuf::from(h).join("lib64")));
        }
        folders.push(PathBuf::from("/usr/local/cuda/lib64"));
        Self { folders, only: false }
    }

    fn open(&self, names: &[&str]) -> Option<Library> {
        let inside = self.folders.iter().flat_map(|f| names.iter().map(move |n| f.join(n)));
        let system = names.iter().filter(|_| !self.only).map(PathBuf::from);
        inside.chain(system).find_map(|path| {
            // SAFETY: these are the vendor's libraries; their start-up code is what any program
            // that uses them runs.
            unsafe { Library::new(path) }.ok()
        })
    }
}

const CUDA: &[&str] = &["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
const LIBRARIES: &[(&str, &[&str])] = &[
    ("cuBLAS", &["libcublas.so.13", "libcublas.so.12", "libcublas.so", "cublas64_13.dll"]),
    ("NVRTC", &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll"]),
];
const NVML: &[&str] = &["libnvidia-ml.so.1", "libnvidia-ml.so", "nvml.dll"];

/// Looks.
#[must_use]
pub fn probe(places: &Places) -> Status {
    let Some(cuda) = places.open(CUDA) else {
        return Status::NoDriver;
    };
    let driver = match driver(&cuda) {
        Ok(version) if version < DRIVER_NEEDED => return Status::DriverTooOld { have: version },
        Ok(version) => version,
        // 100: no device.
        Err(100) => return Status::NoDevice,
        Err(code) => return Status::DriverFails { code },
    };
    let mut gpus = match devices(&cuda) {
        Ok(gpus) if gpus.is_empty() => return Status::NoDevice,
        Ok(gpus) => gpus,
        Err(code) => return Status::DriverFails { code },
    };
    if let Some(nvml) = places.open(NVML) {
        free_memory(&nvml, &mut gpus);
    }
    let missing = LIBRARIES.iter().filter(|(_, names)| places.open(names).is_none());
    let which: Vec<String> = missing.map(|(name, _)| (*name).to_owned()).collect();
    if which.is_empty() {
        Status::Ready { driver, gpus }
    } else {
        Status::MissingLibrary { which, driver, gpus }
    }
}

/// A function of a library; -1 where it has none of this name.
fn symbol<'a, T>(library: &'a Library, name: &str) -> Result<Symbol<'a, T>, i32> {
    // SAFETY: every caller names the type that the vendor's interface documents.
    unsafe { library.get(name.as_bytes()) }.map_err(|_| -1)
}

fn ok(code: c_int) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

fn driver(cuda: &Library) -> Result<i32, i32> {
    let init = symbol::<unsafe extern "C" fn(c_uint) -> c_int>(cuda, "cuInit")?;
    let get = symbol::<unsafe extern "C" fn(*mut c_int) -> c_int>(cuda, "cuDriverGetVersion")?;
    let mut version = 0;
    // SAFETY: cuDriverGetVersion may be called before cuInit; both take what is given.
    unsafe {
        ok(get(&raw mut version))?;
        if version >= DRIVER_NEEDED {
            ok(init(0))?;
        }
    }
    Ok(version)
}

fn devices(cuda: &Library) -> Result<Vec<Gpu>, i32> {
    type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
    type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
    type Memory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
    type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
    let count = symbol::<unsafe extern "C" fn(*mut c_int) -> c_int>(cuda, "cuDeviceGetCount")?;
    let get = symbol::<Get>(cuda, "cuDeviceGet")?;
    let name = symbol::<Name>(cuda, "cuDeviceGetName")?;
    let memory = symbol::<Memory>(cuda, "cuDeviceTotalMem_v2")?;
    let attribute = symbol::<Attribute>(cuda, "cuDeviceGetAttribute")?;
    let mut gpus = Vec::new();
    let mut devices = 0;
    // SAFETY: pointers are to living values of the sizes that are told.
    unsafe {
        ok(count(&raw mut devices))?;
        for ordinal in 0..devices {
            let (mut device, mut bytes, mut major, mut minor) = (0, 0_usize, 0, 0);
            let mut text = [0_u8; 256];
            ok(get(&raw mut device, ordinal))?;
            ok(name(text.as_mut_ptr().cast(), 255, device))?;
            ok(memory(&raw mut bytes, device))?;
            ok(attribute(&raw mut major, 75, device))?;
            ok(attribute(&raw mut minor, 76, device))?;
            let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
            gpus.push(Gpu {
                name: String::from_utf8_lossy(&text[..end]).into_owned(),
                compute: (major, minor),
                memory_bytes: bytes as u64,
                free_bytes: None,
            });
        }
    }
    Ok(gpus)
}

/// Free memory by the management library. Its order of cards may differ from the driver's, so it
/// is only used where there is one card.
fn free_memory(nvml: &Library, gpus: &mut [Gpu]) {
    #[repr(C)]
    #[derive(Default)]
    struct Memory {
        total: u64,
        free: u64,
        used: u64,
    }
    type Handle = *mut std::ffi::c_void;
    type ByIndex = unsafe extern "C" fn(c_uint, *mut Handle) -> c_int;
    type Info = unsafe extern "C" fn(Handle, *mut Memory) -> c_int;
    let look = || -> Result<Vec<u64>, i32> {
        let init = symbol::<unsafe extern "C" fn() -> c_int>(nvml, "nvmlInit_v2")?;
        let by_index = symbol::<ByIndex>(nvml, "nvmlDeviceGetHandleByIndex_v2")?;
        let info = symbol::<Info>(nvml, "nvmlDeviceGetMemoryInfo")?;
        let mut free = Vec::new();
        // SAFETY: pointers are to living values of the types that the interface documents.
        unsafe {
            ok(init())?;
            for index in 0..u32::try_from(gpus.len()).unwrap_or(0) {
                let mut handle: Handle = std::ptr::null_mut();
                let mut memory = Memory::default();
                ok(by_index(index, &raw mut handle))?;
                ok(info(handle, &raw mut memory))?;
                free.push(memory.free);
            }
        }
        Ok(free)
    };
    if let Ok(free) = look()
        && gpus.len() == 1
    {
        gpus.iter_mut().zip(free).for_each(|(gpu, free)| gpu.free_bytes = Some(free));
    }
}
