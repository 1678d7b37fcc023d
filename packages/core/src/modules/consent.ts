import type { ErrorDetail } from '@platform/contract/common'
import type { OrganisationModule, OrganisationModuleChange } from '@platform/contract/module'
import * as z from 'zod'
import { reauthorize } from '../accounts/current-rights.ts'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, upsert } from '../db/table.ts'
import { platformError, validationFailedError } from '../error.ts'
import { commit } from '../outbox/commit.ts'
import { isInstalled, readModules } from './module.ts'
import { isModuleId, type ModuleRecord, parseModule, publisherOf } from './record.ts'

/**
 * The events of an organisation that a module may receive: none until an administrator enables the module. A consent
 * applies only to releases of the module's publisher at that time, also after a reinstallation.
 */

const Consent = z.object({ enabled: z.boolean(), events: z.array(z.string()), publisher: z.string().optional() })
type Consent = z.infer<typeof Consent>

const attributeName = (moduleId: string): string => `module:${moduleId}`

const noConsent: Consent = { enabled: false, events: [] }

const consentIn = (item: Item | undefined, moduleId: string): Consent | undefined => {
  const text = item?.[attributeName(moduleId)]
  return typeof text === 'string' ? Consent.parse(JSON.parse(text)) : undefined
}

const consentTo = (item: Item | undefined, moduleId: string, publisher: string | undefined): Consent => {
  const consent = consentIn(item, moduleId)
  return consent !== undefined && consent.publisher === publisher ? consent : noConsent
}

export type AllowedEvents = (module: { moduleId: string; publisher: string | undefined }) => readonly string[]

export async function readAllowedEvents(organisationId: string): Promise<AllowedEvents> {
  const item = await get(keys.organisationModules(organisationId), { mayBeStale: true })
  return ({ moduleId, publisher }) => {
    const { enabled, events } = consentTo(item, moduleId, publisher)
    return enabled && publisher !== undefined ? events : []
  }
}

export async function listConsents({ organisationId }: Caller): Promise<{ items: OrganisationModule[] }> {
  const [{ modules }, item] = await Promise.all([readModules(), get(keys.organisationModules(organisationId))])
  const installedModules = modules.filter(isInstalled)
  const ids = new Set(installedModules.map(({ id }) => id))
  const absentIds = consentedIds(item).filter((id) => !ids.has(id))
  return {
    items: [
      ...installedModules.map((module) => consentView(module, consentTo(item, module.id, publisherOf(module.release)))),
      ...absentIds.map((id) => viewOfAbsent(id, consentIn(item, id))),
    ],
  }
}

const consentedIds = (item: Item | undefined): string[] =>
  Object.keys(item ?? {})
    .filter((name) => name.startsWith(attributeName('')))
    .map((name) => name.slice(attributeName('').length))
    .filter((id) => consentIn(item, id)?.enabled)

export async function setConsent(
  caller: Caller,
  moduleId: string,
  change: OrganisationModuleChange,
): Promise<OrganisationModule> {
  if (!isModuleId(moduleId)) throw platformError('module_not_found')
  const consentsKey = keys.organisationModules(caller.organisationId)
  const [, item, consents] = await reauthorize(caller, ['users:admin'], [keys.module(moduleId), consentsKey])
  if (item === undefined) return withdrawFromAbsent(caller, moduleId, consentIn(consents, moduleId), change)
  const module = parseModule(item)
  const declaredTypes = declaredEvents(module)
  const { enabled, events = enabled ? declaredTypes : [] } = change
  const undeclaredTypeErrors = events.flatMap((type, index): ErrorDetail[] =>
    declaredTypes.includes(type)
      ? []
      : [{ in: 'body', path: `/events/${index}`, code: 'not_declared', message: 'is not declared by the module' }],
  )
  if (undeclaredTypeErrors.length > 0) throw validationFailedError(undeclaredTypeErrors)
  const consent = { enabled, events: [...new Set(events)], publisher: publisherOf(module.release) }
  const response = consentView(module, consent)
  const set = { [attributeName(moduleId)]: JSON.stringify(consent) }
  await commit(caller, {
    writes: [upsert(consentsKey, { set })],
    response,
    audit: {
      action: enabled ? 'module.enable' : 'module.disable',
      resource: moduleId,
      detail: consent.events.join(' ').slice(0, 500),
    },
  })
  return response
}

/** Withdraws the consent to an uninstalled module, which would otherwise apply again when the module is reinstalled. */
async function withdrawFromAbsent(
  caller: Caller,
  moduleId: string,
  consent: Consent | undefined,
  { enabled }: OrganisationModuleChange,
): Promise<OrganisationModule> {
  if (enabled || consent === undefined) throw platformError('module_not_found')
  const response = viewOfAbsent(moduleId, noConsent)
  const change = { set: { [attributeName(moduleId)]: JSON.stringify(noConsent) } }
  await commit(caller, {
    writes: [upsert(keys.organisationModules(caller.organisationId), change)],
    response,
    audit: { action: 'module.disable', resource: moduleId },
  })
  return response
}

/** A manifest that another release of the platform has stored may have no events. */
const declaredEvents = ({ release }: ModuleRecord): string[] => release.manifest.spec.events ?? []

const consentView = (module: ModuleRecord, { enabled, events }: Consent): OrganisationModule => ({
  id: module.id,
  name: module.release.manifest.metadata.name,
  enabled,
  events,
  declaredEvents: declaredEvents(module),
})

const viewOfAbsent = (id: string, { enabled, events }: Consent = noConsent): OrganisationModule => ({
  id,
  name: id,
  enabled,
  events,
  declaredEvents: [],
})
