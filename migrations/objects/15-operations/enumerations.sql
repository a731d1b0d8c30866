-- Enumerations of jobs.

select app_private.describe_enum('job_state', 'Scheduling state of a job.', array[
  ['DUE', 'Runs as soon as a worker is free.'],
  ['SCHEDULED', 'Runs at `runAt`, such as a retry after a failure.'],
  ['PAUSED', 'Its task is paused; runs when the task is resumed.'],
  ['RUNNING', 'A worker is executing it.'],
  ['FAILED', 'The last attempt failed; it is not retried.'],
  ['SET_ASIDE', 'Not retried automatically, because the process crashed twice while running it.']
]);
