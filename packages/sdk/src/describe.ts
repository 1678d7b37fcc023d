import type { ModuleDefinition } from './definition.ts'
import { type Description, sdkVersion } from './protocol.ts'

/** The description of a module from its code. Author tools generate parts of the manifest from it. */
export type ModuleDescription = Pick<Description, 'id' | 'version' | 'slots' | 'healthChecks' | 'jobs'>

/** Describes a module without running it. */
export function describe({
  id,
  version,
  slots = [],
  healthChecks = {},
  jobs = {},
}: ModuleDefinition): ModuleDescription {
  return {
    id,
    version,
    slots: slots.map((slot) => ({ ...slot })),
    healthChecks: Object.entries(healthChecks).map(([name, { tags }]) => ({ name, tags })),
    jobs: Object.entries(jobs).map(([id, { description, intervalSeconds }]) => ({ id, description, intervalSeconds })),
  }
}

/** Describes an instance of a module, including its state and subscriptions. */
export const describeInstance = (
  definition: ModuleDefinition,
  instance: Pick<Description, 'state' | 'subscriptions'>,
): Description => ({ sdkVersion, ...describe(definition), ...instance })
