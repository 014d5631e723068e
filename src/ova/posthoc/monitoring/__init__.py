"""A stream of answers watched for as long as it lasts: has it changed, is what was promised still kept?"""

from ova.posthoc.monitoring.monitor import Monitor as Monitor
