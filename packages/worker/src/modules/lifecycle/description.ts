import type { ModuleManifest } from '@platform/contract/manifest'
import { slotWarning } from '@platform/contract/module'
import { log } from '@platform/core/log'
import * as z from 'zod'
import { type Description, states } from '@platform/modules/protocol'
import { sanitize } from './control-client.ts'

const text = z.string().max(300)

export const InstanceDescription: z.ZodType<Description> = z.object({
  sdkVersion: text,
  id: text,
  version: text,
  state: z.enum(states),
  slots: z.array(z.record(z.string(), z.unknown())).max(100),
  healthChecks: z.array(z.object({ name: text, tags: z.array(text).max(10) })).max(100),
  jobs: z.array(z.object({ id: text, description: z.string().max(1000), intervalSeconds: z.number() })).max(100),
  subscriptions: z.array(text).max(200),
})

const maxWarnings = 20

/** Returns the differences between code and manifest that do not prevent the module from running. */
export function warningsOf(description: Description, { metadata, spec }: ModuleManifest): string[] {
  const missingJobs = missingNames(spec.backgroundJobs, description.jobs, ({ id }) => id)
  return [
    ...(canonicalText(description.slots) === canonicalText(spec.navSlots) ? [] : [slotWarning]),
    ...(description.version === metadata.version
      ? []
      : ['The version in the module’s code differs from its manifest’s.']),
    ...missingJobs.map((id) => `The manifest’s job ${id} is not in the module’s code.`),
  ].slice(0, maxWarnings)
}

/** Logs a warning if the slots of the code and the manifest differ. */
export function logSlotWarning({ slots }: Description, { metadata: { id }, spec: { navSlots } }: ModuleManifest): void {
  if (canonicalText(slots) === canonicalText(navSlots)) return
  log('warn', slotWarning, { moduleId: id, slots: slotNames(slots), manifestSlots: slotNames(navSlots) })
}

/** Returns names for the log. The slots of the code may contain anything. */
const slotNames = (slots: readonly Record<string, unknown>[]): string[] =>
  slots.slice(0, 20).map(({ slotId, id, route }) => sanitize([slotId, id, route].map(String).join(' '), 300))

/** Returns the same text for equal slots, regardless of the order of slots and members. */
const canonicalText = (slots: readonly Record<string, unknown>[]): string =>
  JSON.stringify(slots.map((slot) => JSON.stringify(Object.entries(slot).toSorted(compareByName))).toSorted())

const compareByName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1)

function missingNames<Named>(
  declaredItems: readonly Named[],
  presentItems: readonly Named[],
  nameOf: (named: Named) => string,
): string[] {
  const names = new Set(presentItems.map(nameOf))
  return declaredItems.map(nameOf).filter((name) => !names.has(name))
}
