import type { Capability } from './endpoint.ts'

/**
 * Trigger of a function without routes: a queue, a schedule, a deployment, a relay's attempt to connect to the broker,
 * or the start or end of a control channel.
 */
export type Trigger =
  | { queue: string; batchSize: number; maximumConcurrency: number }
  | { everySeconds: number }
  | 'deployment'
  | 'channel-connect'
  | 'channel-presence'

/** A function without routes. */
export interface Task {
  trigger: Trigger
  /** Timeout of one invocation, in seconds. */
  timeoutSeconds: number
  capabilities: readonly Capability[]
}

/** Timeout of a function that defines none, in seconds. */
export const defaultFunctionTimeoutSeconds = 30

const storeAccess = ['table:read', 'table:write'] as const
const moduleRemoval = ['secret:module-key', 'modules:remove', 'modules:invoke', 'queue:events'] as const
const moduleOperations = [...moduleRemoval, 'secret:registries', 'modules:deploy'] as const
const defaultBatching = { batchSize: 10, maximumConcurrency: 4 }
const singleMessages = { batchSize: 1, maximumConcurrency: 100 }

/**
 * Functions without routes: name → trigger, timeout and capabilities. Each is one file, `functions/<name>.ts`. The
 * deployment and the one-machine platform read this table and the route table.
 */
export const tasks = {
  bootstrap: {
    trigger: 'deployment',
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [
      ...storeAccess,
      'secret:access-keys',
      'secret:module-token-keys',
      'secret:statement-keys',
      'secret:keys-write',
      'secret:initial-admin-token',
      'secret:initial-admin-token-write',
    ],
  },
  'channel-authorizer': {
    trigger: 'channel-connect',
    // AWS IoT waits at most 5 seconds for an authorizer.
    timeoutSeconds: 5,
    capabilities: ['table:read'],
  },
  'queue/presence': {
    trigger: 'channel-presence',
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'queue:events'],
  },
  'queue/batches': {
    // Expanding batches loads the database, so only one runs at a time; on AWS two, because Lambda allows no lower limit.
    trigger: { queue: 'batches', batchSize: 1, maximumConcurrency: 1 },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'queue:events', 'channel:wake'],
  },
  'queue/batches-dead-letter': {
    trigger: { queue: 'batches-dead-letter', ...defaultBatching },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'queue:events', 'channel:wake'],
  },
  'queue/events': {
    trigger: { queue: 'events', ...defaultBatching },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'queue:events', 'queue:webhooks', 'queue:modules', 'channel:wake'],
  },
  'queue/webhooks': {
    // A receiver that does not respond delays only its own message.
    trigger: { queue: 'webhooks', ...singleMessages },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'secret:webhook-key', 'queue:webhooks', 'queue:events'],
  },
  'queue/installs': {
    // Image downloads and lifecycle hooks take minutes.
    trigger: { queue: 'installs', batchSize: 1, maximumConcurrency: 10 },
    timeoutSeconds: 300,
    capabilities: [...storeAccess, ...moduleOperations, 'queue:installs'],
  },
  'queue/installs-dead-letter': {
    trigger: { queue: 'installs-dead-letter', ...defaultBatching },
    timeoutSeconds: 300,
    capabilities: [...storeAccess, ...moduleRemoval],
  },
  'queue/updates': {
    // An update monitors the release at up to three traffic steps, which takes minutes.
    trigger: { queue: 'updates', batchSize: 1, maximumConcurrency: 2 },
    timeoutSeconds: 300,
    capabilities: [
      ...storeAccess,
      'secret:registries',
      'functions:update',
      'functions:revert',
      'queue:updates',
      'queue:events',
    ],
  },
  'queue/updates-dead-letter': {
    trigger: { queue: 'updates-dead-letter', ...defaultBatching },
    timeoutSeconds: 300,
    capabilities: [...storeAccess, 'functions:revert', 'queue:events'],
  },
  'queue/modules': {
    trigger: { queue: 'modules', ...singleMessages },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...storeAccess, 'secret:module-key', 'modules:invoke', 'queue:modules', 'queue:events'],
  },
  'schedule/sweep': {
    trigger: { everySeconds: 60 },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [
      ...storeAccess,
      'queue:batches',
      'queue:events',
      'channel:wake',
      'queue:webhooks',
      'queue:installs',
      'queue:updates',
      'secret:identity',
      'secret:identity-remove',
    ],
  },
  'schedule/checkpoints': {
    trigger: { everySeconds: 900 },
    timeoutSeconds: 120,
    capabilities: ['table:read', 'secret:audit-key', 'audit:checkpoints'],
  },
  'schedule/write-check': {
    trigger: { everySeconds: 60 },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: ['table:write'],
  },
  'schedule/heartbeat': {
    trigger: { everySeconds: 60 },
    timeoutSeconds: 300,
    capabilities: [...storeAccess, ...moduleOperations, 'queue:modules'],
  },
  'schedule/catalog': {
    trigger: { everySeconds: 300 },
    timeoutSeconds: 120,
    capabilities: [...storeAccess, 'secret:registries'],
  },
  'schedule/updates': {
    trigger: { everySeconds: 3600 },
    timeoutSeconds: 60,
    capabilities: [...storeAccess, 'secret:registries', 'queue:events'],
  },
} as const satisfies Record<string, Task>

type ConsumedQueue = Extract<(typeof tasks)[keyof typeof tasks]['trigger'], { queue: string }>['queue']

/** Name of a queue with a consumer. Each such queue has a dead-letter queue with the suffix `-dead-letter`. */
export type WorkQueueName = Exclude<ConsumedQueue, `${string}-dead-letter`>

const isWorkQueue = (queue: ConsumedQueue): queue is WorkQueueName => !queue.endsWith('-dead-letter')

/** Work queues with the timeout of their consumer, in seconds. */
export const workQueues: readonly { name: WorkQueueName; timeoutSeconds: number }[] = Object.values(tasks).flatMap(
  ({ trigger, timeoutSeconds }) =>
    typeof trigger === 'object' && 'queue' in trigger && isWorkQueue(trigger.queue)
      ? [{ name: trigger.queue, timeoutSeconds }]
      : [],
)

/** Retention of dead-letter queues, in seconds: the maximum of SQS. */
export const deadLetterRetentionSeconds: number = 14 * 24 * 3600
