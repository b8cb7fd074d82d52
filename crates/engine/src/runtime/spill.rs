//! A query's spill files. An operator may write megabytes between two cancellation checks, so each
//! write also checks whether the query is still running.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{CacheManager, CacheManagerConfig};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use datafusion::object_store::ObjectStore;
use futures::Stream;
use tidemark_types::EngineResult;
use url::Url;

use crate::runtime::cancel::{CancelToken, Deadline};
use crate::runtime::pool::SharedPool;
use tidemark_operators::from_datafusion;

/// Creates the environment shared by all queries: memory pool and spill directory, without object
/// stores. Files are not read through object stores, and the default registry would link
/// `DataFusion`'s stores into the addon.
pub(crate) fn runtime_environment(
    memory: &Arc<SharedPool>,
    spill_root: PathBuf,
    spill_limit_bytes: u64,
) -> EngineResult<Arc<RuntimeEnv>> {
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![spill_root]))
        .with_max_temp_directory_size(spill_limit_bytes);
    Ok(Arc::new(RuntimeEnv {
        memory_pool: memory.query(""),
        disk_manager: Arc::new(disk.build().map_err(from_datafusion)?),
        cache_manager: CacheManager::try_new(&CacheManagerConfig::default())
            .map_err(from_datafusion)?,
        object_store_registry: Arc::new(NoObjectStores),
    }))
}

/// A registry without object stores.
#[derive(Debug)]
struct NoObjectStores;

impl ObjectStoreRegistry for NoObjectStores {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        internal_err!("no object store for {url}")
    }
}

/// Returns the disk manager for one query. While the query may run, the manager creates files
/// through `shared`, whose limit applies.
pub(crate) fn query_disk(
    shared: &Arc<DiskManager>,
    token: &CancelToken,
    deadline: Deadline,
) -> EngineResult<Arc<DiskManager>> {
    let until = Until { token: token.clone(), deadline };
    let files = QueryFiles { shared: Arc::clone(shared), until };
    let disk = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(files)).build();
    disk.map(Arc::new).map_err(from_datafusion)
}

#[derive(Clone)]
struct Until {
    token: CancelToken,
    deadline: Deadline,
}

struct QueryFiles {
    shared: Arc<DiskManager>,
    until: Until,
}

impl TempFileFactory for QueryFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        let file = self.shared.create_tmp_file(description)?;
        Ok(Arc::new(QueryFile { file, until: self.until.clone() }))
    }
}

struct QueryFile {
    file: Arc<dyn SpillFile>,
    until: Until,
}

impl SpillFile for QueryFile {
    fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        self.file.read_stream()
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let writer = self.file.open_writer()?;
        Ok(Box::new(QueryWriter { writer, until: self.until.clone() }))
    }
}

struct QueryWriter {
    writer: Box<dyn SpillWriter>,
    until: Until,
}

impl io::Write for QueryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.until.token.is_cancelled() || self.until.deadline.has_passed() {
            return Err(io::Error::other("the query was stopped"));
        }
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl SpillWriter for QueryWriter {
    fn finish(&mut self) -> Result<()> {
        self.writer.finish()
    }
}
