//! Files of a table: Parquet with required flat columns, packed with gzip.
//!
//! The same table makes the same bytes: nothing of time, machine or version is in a file.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{Column, Table, Values};

/// Rows of a group: what engines read at once.
const GROUP: usize = 1_000_000;
/// As `gzip` packs by default.
const LEVEL: u32 = 6;

impl Table {
    /// The bytes of its file.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn file(&self) -> io::Result<Vec<u8>> {
        self.encode(GROUP).map_err(io::Error::other)
    }

    /// The same with groups of so many rows.
    pub(super) fn encode(&self, most: usize) -> Result<Vec<u8>, ParquetError> {
        let fields: Result<Vec<_>, _> = self.columns.iter().map(field).collect();
        let schema = Type::group_type_builder("schema").with_fields(fields?);
        let schema = Arc::new(schema.build()?);
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by("pjit".to_owned())
            .set_compression(Compression::GZIP(GzipLevel::try_new(LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        let mut file = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties))?;
        let rows = self.rows();
        let texts: Vec<Vec<ByteArray>> = self.columns.iter().map(texts).collect();
        let mut start = 0;
        while start < rows {
            let end = rows.min(start + most);
            let mut group = writer.next_row_group()?;
            for (column, words) in self.columns.iter().zip(&texts) {
                if let Some(mut chunk) = group.next_column()? {
                    put(&column.values, words, start..end, &mut chunk)?;
                    chunk.close()?;
                }
            }
            group.close()?;
            start = end;
        }
        writer.close()?;
        Ok(file)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.values {
        Values::Int32(_) => (Physical::INT32, None),
        Values::Int64(_) => (Physical::INT64, None),
        Values::Micros(_) => {
            let micros = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(micros))
        }
        Values::Text(..) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical);
    field.build().map(Arc::new)
}

/// The texts of a column, each of which its values share.
fn texts(column: &Column) -> Vec<ByteArray> {
    match &column.values {
        Values::Text(texts, _) => texts.iter().map(|text| text.as_str().into()).collect(),
        Values::Int32(_) | Values::Int64(_) | Values::Micros(_) => Vec::new(),
    }
}

fn put(
    values: &Values,
    texts: &[ByteArray],
    rows: Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    match values {
        Values::Int32(values) => {
            let writer: &mut ColumnWriterImpl<'_, Int32Type> = writer.typed();
            writer.write_batch(&values[rows], None, None)?;
        }
        Values::Int64(values) | Values::Micros(values) => {
            let writer: &mut ColumnWriterImpl<'_, Int64Type> = writer.typed();
            writer.write_batch(&values[rows], None, None)?;
        }
        Values::Text(_, ids) => {
            let text = |id: &u32| texts.get(*id as usize).cloned().unwrap_or_default();
            let cells: Vec<ByteArray> = ids[rows].iter().map(text).collect();
            let writer: &mut ColumnWriterImpl<'_, ByteArrayType> = writer.typed();
            writer.write_batch(&cells, None, None)?;
        }
    }
    Ok(())
}
