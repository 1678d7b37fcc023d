const deploying = ['modules:deploy', 'modules:deploy (images)', 'modules:deploy (registry)', 'modules:deploy (role)']
const runningGrants = ['secret:module-key', 'modules:remove', 'modules:remove (list)', 'modules:invoke', ...deploying]

/** Function → grants that `modules.long.test.ts` uses. */
export const moduleGrants: Record<string, readonly string[]> = {
  modules: ['queue:installs'],
  'gateway/modules': ['table:read', 'secret:module-token-keys', 'secret:module-key', 'modules:invoke'],
  'queue/events': ['queue:modules'],
  'queue/modules': ['table:read', 'table:write', 'secret:module-key', 'modules:invoke', 'messages'],
  'queue/installs': [...runningGrants, 'modules:remove (images)', 'queue:events'],
  'schedule/heartbeat': runningGrants,
}

export const releaseGrants: Record<string, readonly string[]> = {
  updates: ['table:write', 'queue:events', 'queue:updates'],
  'schedule/updates': ['table:write', 'queue:events'],
  'schedule/sweep': ['queue:updates'],
  'queue/updates': ['table:read', 'table:write', 'functions:revert', 'functions:update', 'queue:events'],
  'queue/updates-dead-letter': ['table:read', 'table:write', 'queue:events', 'messages'],
}

const publishes = 'A module may publish events in any response; the reference module publishes none.'
const compensates = 'Compensates for a worker that was killed during an installation or update.'

const recordsDenials = 'Records denied calls; every role may call the routes of this function.'
const releasesJobs = 'Wakes relays for jobs that waited because of a limit of their batch.'
const noTargetError = 'No target for checkpoints is set.'

/** Function → grant → the reason why no suite uses it. */
export const unusedGrants: Record<string, Record<string, string>> = {
  meta: { 'queue:events': recordsDenials },
  'portal-data': { 'queue:events': recordsDenials },
  'schedule/checkpoints': { 'table:read': noTargetError, 'secret:audit-key': noTargetError },
  'gateway/modules': {
    'table:write': 'Records the first use of an API token, like every function.',
    'queue:events': publishes,
  },
  relay: { 'channel:wake': 'Wakes the replaced relay when another one enrolls.' },
  bootstrap: { 'secret:statement-keys': 'Rotates the keys when an operator requests it.' },
  'queue/presence': {
    'queue:events': 'Checks a cluster soon after the end of a channel that was open for two minutes.',
  },
  'queue/batches-dead-letter': { 'channel:wake': releasesJobs },
  'queue/events': {
    'queue:events': 'Continues with an organisation after fifteen seconds of work.',
    'channel:wake': releasesJobs,
  },
  'queue/modules': {
    'queue:events': publishes,
    'queue:modules': 'Repeats failed deliveries and continues long ones.',
  },
  'queue/installs': {
    'queue:installs': 'Repeats an attempt that failed.',
    'secret:registries': 'Reads the images of modules from private registries.',
  },
  'queue/updates': {
    'queue:updates': 'Repeats an attempt that failed.',
    'secret:registries': 'Reads releases from private registries.',
  },
  'queue/updates-dead-letter': { 'functions:revert': compensates },
  'queue/installs-dead-letter': {
    'table:read': compensates,
    'table:write': compensates,
    'queue:events': compensates,
    messages: compensates,
    'modules:invoke': compensates,
    'modules:remove': compensates,
    'modules:remove (images)': compensates,
    'modules:remove (list)': compensates,
    'secret:module-key': compensates,
  },
  'schedule/sweep': {
    'secret:identity': 'Confirms users of directories who used an API token.',
    'queue:installs': 'Repeats lost messages of installations.',
    'channel:wake': 'Wakes relays when a relay update offers them the next version.',
  },
  'schedule/heartbeat': {
    'table:write': 'Records the health of each module.',
    'secret:registries': 'Copies an image again that the account no longer has.',
    'modules:remove (images)': 'Deletes the images with the last function of a module.',
    'queue:events': publishes,
    'queue:modules': 'Repeats lost messages of pending module events.',
  },
}
