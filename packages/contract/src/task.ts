import { type Capability } from './endpoint.ts'

/** What begins a function that serves no route: messages of a queue, a clock, or a deployment. */
export type Trigger =
  | { queue: string; batchSize: number; maximumConcurrency: number }
  | { everySeconds: number }
  | 'deployment'

/** A function that serves no route, and what it needs of the platform. */
export interface Task {
  trigger: Trigger
  /** The most that one run may take. */
  timeoutSeconds: number
  capabilities: readonly Capability[]
}

/** What functions get that say nothing else. */
export const defaultFunctionTimeoutSeconds = 30

const store = ['table:read', 'table:write'] as const
/** What ending a module takes, wherever that is done, and what running one takes beside it. */
const moduleEnd = ['secret:signing-keys', 'modules:remove', 'modules:invoke', 'queue:events'] as const
const modules = [...moduleEnd, 'secret:registries', 'modules:deploy'] as const
const usually = { batchSize: 10, maximumConcurrency: 4 }
const oneByOne = { batchSize: 1, maximumConcurrency: 100 }

/**
 * Every function that serves no route → what begins it. One file each, `functions/<name>.ts`; with the route table this is
 * all that the platform consists of: the deployment and the one-machine runner read both.
 */
export const tasks = {
  bootstrap: {
    trigger: 'deployment',
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [
      ...store,
      'secret:signing-keys',
      'secret:signing-keys-write',
      'secret:initial-admin-token',
      'secret:initial-admin-token-write',
    ],
  },
  'queue/jobs': {
    trigger: { queue: 'jobs', ...usually },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'queue:events'],
  },
  'queue/jobs-dead-letter': {
    trigger: { queue: 'jobs-dead-letter', ...usually },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'queue:events'],
  },
  'queue/batches': {
    // Expanding keeps the store busy: one batch after the other, those of each organisation in turn.
    trigger: { queue: 'batches', batchSize: 1, maximumConcurrency: 1 },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'queue:events'],
  },
  'queue/batches-dead-letter': {
    trigger: { queue: 'batches-dead-letter', ...usually },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'queue:events'],
  },
  'queue/events': {
    trigger: { queue: 'events', ...usually },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'queue:events', 'queue:webhooks', 'queue:modules'],
  },
  'queue/webhooks': {
    // A receiver may hang.
    trigger: { queue: 'webhooks', ...oneByOne },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'secret:signing-keys', 'queue:webhooks', 'queue:events'],
  },
  'queue/updates': {
    // Images travel, hooks take their time, and a release is watched before it serves everybody.
    trigger: { queue: 'updates', batchSize: 1, maximumConcurrency: 10 },
    timeoutSeconds: 300,
    capabilities: [...store, ...modules, 'functions:update', 'functions:revert', 'queue:updates'],
  },
  'queue/updates-dead-letter': {
    trigger: { queue: 'updates-dead-letter', ...usually },
    timeoutSeconds: 300,
    capabilities: [...store, ...moduleEnd, 'functions:revert'],
  },
  'queue/modules': {
    trigger: { queue: 'modules', ...oneByOne },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [...store, 'secret:signing-keys', 'modules:invoke', 'queue:modules', 'queue:events'],
  },
  'schedule/sweep': {
    trigger: { everySeconds: 60 },
    timeoutSeconds: defaultFunctionTimeoutSeconds,
    capabilities: [
      ...store,
      'queue:jobs',
      'queue:batches',
      'queue:events',
      'queue:webhooks',
      'queue:updates',
      'secret:identity-remove',
    ],
  },
  'schedule/heartbeat': {
    trigger: { everySeconds: 60 },
    timeoutSeconds: 300,
    capabilities: [...store, ...modules, 'queue:modules'],
  },
  'schedule/catalog': {
    trigger: { everySeconds: 300 },
    timeoutSeconds: 120,
    capabilities: [...store, 'secret:registries'],
  },
  'schedule/updates': {
    trigger: { everySeconds: 3600 },
    timeoutSeconds: 60,
    capabilities: [...store, 'secret:registries', 'queue:events'],
  },
} as const satisfies Record<string, Task>

type ConsumedQueue = Extract<(typeof tasks)[keyof typeof tasks]['trigger'], { queue: string }>['queue']

/** A queue that a task consumes, and that is no dead-letter queue: each of these has one, with `-dead-letter` behind its name. */
export type WorkQueueName = Exclude<ConsumedQueue, `${string}-dead-letter`>

const isWork = (queue: ConsumedQueue): queue is WorkQueueName => !queue.endsWith('-dead-letter')

/** The queues of work, and the most that one batch of messages may take. */
export const workQueues: readonly { name: WorkQueueName; timeoutSeconds: number }[] = Object.values(tasks).flatMap(
  ({ trigger, timeoutSeconds }) =>
    typeof trigger === 'object' && 'queue' in trigger && isWork(trigger.queue)
      ? [{ name: trigger.queue, timeoutSeconds }]
      : [],
)

/** Retention of dead-letter queues: the maximum of SQS. */
export const deadLetterRetentionSeconds: number = 14 * 24 * 3600
