import { type ErrorDetail } from '@platform/contract/common'
import { type OrganisationModule, type OrganisationModuleChange } from '@platform/contract/module'
import * as z from 'zod'
import { reauthorize } from '../accounts/current-rights.ts'
import { type Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, upsert } from '../db/table.ts'
import { platformError, validationFailed } from '../error.ts'
import { commit } from '../outbox/commit.ts'
import { isInstalled, readModules } from './module.ts'
import { isModuleId, type ModuleRecord, parseModule } from './record.ts'

/** The events that modules may receive of an organisation. Without an administrator's decision, they receive none. */

const Consent = z.object({ enabled: z.boolean(), events: z.array(z.string()) })
type Consent = z.infer<typeof Consent>

const attributeName = (moduleId: string): string => `module:${moduleId}`

const consentIn = (item: Item | undefined, moduleId: string): Consent => {
  const text = item?.[attributeName(moduleId)]
  return typeof text === 'string' ? Consent.parse(JSON.parse(text)) : { enabled: false, events: [] }
}

export type AllowedEvents = (moduleId: string) => readonly string[]

export async function readAllowedEvents(organisationId: string): Promise<AllowedEvents> {
  const item = await get(keys.organisationModules(organisationId), { stale: true })
  return (moduleId) => {
    const { enabled, events } = consentIn(item, moduleId)
    return enabled ? events : []
  }
}

export async function listConsents({ organisationId }: Caller): Promise<{ items: OrganisationModule[] }> {
  const [{ modules }, item] = await Promise.all([readModules(), get(keys.organisationModules(organisationId))])
  return { items: modules.filter(isInstalled).map((module) => view(module, consentIn(item, module.id))) }
}

export async function setConsent(
  caller: Caller,
  moduleId: string,
  change: OrganisationModuleChange,
): Promise<OrganisationModule> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const [, item] = await reauthorize(caller, ['users:admin'], [keys.module(moduleId)])
  if (item === undefined) throw platformError('module_not_found')
  const module = parseModule(item)
  const declared = declaredEvents(module)
  const { enabled, events = enabled ? declared : [] } = change
  const unknown = events.flatMap((type, index): ErrorDetail[] =>
    declared.includes(type)
      ? []
      : [{ in: 'body', path: `/events/${index}`, code: 'not_declared', message: 'is not declared by the module' }],
  )
  if (unknown.length > 0) throw validationFailed(unknown)
  const consent = { enabled, events: [...new Set(events)] }
  const response = view(module, consent)
  const set = { [attributeName(moduleId)]: JSON.stringify(consent) }
  await commit(caller, {
    writes: [upsert(keys.organisationModules(caller.organisationId), { set })],
    response,
    audit: {
      action: enabled ? 'module.enable' : 'module.disable',
      resource: moduleId,
      detail: consent.events.join(' ').slice(0, 500),
    },
  })
  return response
}

/** A manifest that another release of the platform has stored may have no events. */
const declaredEvents = ({ release }: ModuleRecord): string[] => release.manifest.spec.events ?? []

const view = (module: ModuleRecord, { enabled, events }: Consent): OrganisationModule => ({
  id: module.id,
  name: module.release.manifest.metadata.name,
  enabled,
  events,
  declaredEvents: declaredEvents(module),
})
