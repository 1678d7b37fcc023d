import type { Metrics } from './metrics.ts'
import { operations } from './operations.ts'
import type { Store } from './store.ts'
import type { Input } from './types.ts'

export function isOperation(name: string): boolean {
  return operations.has(name)
}

export async function dispatch(store: Store, metrics: Metrics, name: string, input: Input): Promise<Input> {
  const counters = metrics.begin(name)
  const run = async (request: Input): Promise<Input> => operations.get(name)!(store, request, counters)
  try {
    return await (store.hooks.intercept?.(name, input, run) ?? run(input))
  } catch (error) {
    counters.failures += 1
    throw error
  }
}
