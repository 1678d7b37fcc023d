/** Grants that modules and releases need, shown in files of their own: function → grants. */

const store = ['table:read', 'table:write']
const deploying = ['modules:deploy', 'modules:deploy (images)', 'modules:deploy (registry)', 'modules:deploy (role)']
const running = ['secret:signing-keys', 'secret:registries', 'modules:remove', 'modules:invoke', ...deploying]

/** In `module-grants.test.ts`. */
export const moduleGrants: Record<string, readonly string[]> = {
  modules: [...store, 'queue:updates'],
  'gateway/modules': ['table:read', 'secret:signing-keys', 'modules:invoke'],
  'queue/events': ['queue:modules'],
  'queue/modules': [...store, 'secret:signing-keys', 'modules:invoke', 'messages'],
  'queue/updates': [...store, ...running, 'modules:remove (images)', 'modules:remove (list)', 'messages'],
  'schedule/catalog': [...store, 'secret:registries'],
  'schedule/heartbeat': ['table:read', ...running, 'modules:remove (list)'],
}

/** In `release-grants.test.ts`. */
export const releaseGrants: Record<string, readonly string[]> = {
  modules: ['queue:events', 'secret:registries'],
  updates: ['queue:events', 'queue:updates', 'secret:registries', ...store],
  'schedule/updates': ['queue:events', 'secret:registries', ...store],
  'schedule/sweep': ['queue:updates'],
  'queue/updates': ['functions:revert', 'functions:update', 'queue:events'],
  'queue/updates-dead-letter': ['messages', 'queue:events', ...store],
}

const publishes = 'A module may publish an event whenever it is asked; the reference module publishes none.'
const clears = 'It takes back what a worker had begun that was ended in its midst.'

/** What a function needs, and no journey here shows: why it has it. */
export const unseen: Record<string, Record<string, string>> = {
  'gateway/modules': {
    'table:write': 'The use of an API token is noted, as it is everywhere.',
    'queue:events': publishes,
  },
  'queue/events': {
    'queue:events': 'It hands on what one organisation has caused once that has taken fifteen seconds.',
  },
  'queue/modules': {
    'queue:events': publishes,
    'queue:modules': 'A module that fails is asked again later, and one that falls behind goes on.',
  },
  'queue/updates': { 'queue:updates': 'A try that failed is followed by another one, seconds later.' },
  'queue/updates-dead-letter': {
    'functions:revert': clears,
    'modules:invoke': clears,
    'modules:remove': clears,
    'modules:remove (images)': clears,
    'modules:remove (list)': clears,
    'secret:signing-keys': clears,
  },
  'schedule/heartbeat': {
    'table:write': 'How a module is doing is written at each beat.',
    'modules:remove (images)': 'With the last function of a module its images go.',
    'queue:events': publishes,
    'queue:modules': 'Events that wait for a module may have lost their message.',
  },
}

/** Function → all grants that several such tables name, in order. */
export function byFunction(...tables: readonly Record<string, readonly string[]>[]): Record<string, string[]> {
  const named = Map.groupBy(tables.flatMap(Object.entries<readonly string[]>), ([name]) => name)
  const sorted = [...named].map(([name, each]) => [name, each.flatMap(([, grants]) => grants).toSorted()] as const)
  return Object.fromEntries(sorted)
}
