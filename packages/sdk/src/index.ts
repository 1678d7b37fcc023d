import type { ModuleDefinition } from './definition.ts'

export { callerOf, type Caller } from './caller.ts'
export { type ModuleContext } from './context.ts'
export {
  type Health,
  type HealthCheck,
  type HealthTag,
  type Job,
  type ModuleDefinition,
  type NavigationSlot,
  type Slot,
  type SlotRegistry,
} from './definition.ts'
export {
  type EventBus,
  type EventData,
  type EventHandler,
  type EventRegistry,
  type EventType,
  type ModuleEvent,
} from './events.ts'
export { type LogFields, type Logger } from './logger.ts'
export { type State } from './protocol.ts'
export { serve } from './serve.ts'
export {
  type ServiceCollection,
  type ServiceFactory,
  type ServiceProvider,
  type ServiceToken,
  token,
} from './services.ts'

const kebabCase = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/

/**
 * Declares a module and returns its frozen definition. Throws `TypeError` if the id of the module or a job or the name
 * of a check is not kebab-case, the version is not SemVer, two entries of a slot have the same id, or a job interval is
 * not a whole number of 1 to 86,400 seconds.
 */
export function defineModule(definition: ModuleDefinition): Readonly<ModuleDefinition> {
  const problem = problemOf(definition)
  if (problem !== undefined) throw new TypeError(`The module ${JSON.stringify(definition.id)} is invalid: ${problem}`)
  return Object.freeze(definition)
}

// As in a manifest: the pattern of semver.org, with at most 15 digits for major, minor and patch.
const number = '(?:0|[1-9][0-9]{0,14})'
const prerelease = '(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)'
const semVer = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-${prerelease}(?:\\.${prerelease})*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
)

function problemOf({ id, version, slots = [], healthChecks = {}, jobs = {} }: ModuleDefinition): string | undefined {
  const invalidName = [id, ...Object.keys(healthChecks), ...Object.keys(jobs)].find((name) => !kebabCase.test(name))
  if (invalidName !== undefined) return `${JSON.stringify(invalidName)} is not kebab-case.`
  if (!semVer.test(version)) return `its version ${JSON.stringify(version)} is not SemVer.`
  const slotNames = slots.map((slot) => `${slot.slotId}/${slot.id}`)
  const duplicate = slotNames.find((name, index) => slotNames.indexOf(name) !== index)
  if (duplicate !== undefined) return `it has two slots ${duplicate}.`
  const invalidJob = Object.entries(jobs).find(([, { intervalSeconds }]) => !isInterval(intervalSeconds))
  return invalidJob && `the job ${invalidJob[0]} has an interval of ${invalidJob[1].intervalSeconds} seconds.`
}

const isInterval = (seconds: number): boolean => Number.isInteger(seconds) && seconds >= 1 && seconds <= 86_400
