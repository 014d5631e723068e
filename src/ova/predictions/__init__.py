"""What a model said about a data set: columns, files, parts put together."""

from ova.predictions.columns import COLUMNS as COLUMNS
from ova.predictions.columns import NONE as NONE
from ova.predictions.columns import Predictions as Predictions
from ova.predictions.merging import merge as merge
from ova.predictions.parquet import read as read
from ova.predictions.parquet import read_chunks as read_chunks
from ova.predictions.parquet import write as write
from ova.predictions.parquet import writer as writer
