/** What begins a function that serves no route: messages of a queue, a clock, or a deployment. */
export type Trigger = { queue: string } | { everySeconds: number } | 'deployment'

/**
 * Every function that serves no route → what begins it. One file each, `functions/<name>.ts`; with the route table this is
 * all that the platform consists of.
 */
export const tasks = {
  bootstrap: 'deployment',
  'queue/jobs': { queue: 'jobs' },
  'queue/jobs-dead-letter': { queue: 'jobs-dead-letter' },
  'queue/batches': { queue: 'batches' },
  'queue/batches-dead-letter': { queue: 'batches-dead-letter' },
  'queue/events': { queue: 'events' },
  'queue/webhooks': { queue: 'webhooks' },
  'queue/updates': { queue: 'updates' },
  'queue/updates-dead-letter': { queue: 'updates-dead-letter' },
  'queue/modules': { queue: 'modules' },
  'schedule/sweep': { everySeconds: 60 },
  'schedule/heartbeat': { everySeconds: 60 },
  'schedule/catalog': { everySeconds: 300 },
  'schedule/updates': { everySeconds: 3600 },
} as const satisfies Record<string, Trigger>
