"""Predictions of a classifier on a data set: columns per example, files, and parts merged."""

from ova.predictions.columns import COLUMNS as COLUMNS
from ova.predictions.columns import NONE as NONE
from ova.predictions.columns import NONE_LABEL as NONE_LABEL
from ova.predictions.columns import Predictions as Predictions
from ova.predictions.foreign import Reading as Reading
from ova.predictions.foreign import read_any as read_any
from ova.predictions.merging import merge as merge
from ova.predictions.parquet import has_matrix as has_matrix
from ova.predictions.parquet import lacks as lacks
from ova.predictions.parquet import read as read
from ova.predictions.parquet import read_chunks as read_chunks
from ova.predictions.parquet import write as write
from ova.predictions.parquet import writer as writer
from ova.predictions.sets import SetName as SetName
