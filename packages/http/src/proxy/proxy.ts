import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '@platform/core/caller'
import { bulkhead } from '@platform/core/lib/bulkhead'
import { PlatformError, platformError } from '@platform/core/error'
import { addLogFields } from '@platform/core/log'
import type { Deployment } from '@platform/core/modules/record'
import { createApp, toHonoHandler } from '../app.ts'
import { authenticate, identityOf } from '../authorize.ts'
import type { HttpContext } from '../context.ts'
import { type GatewayEvent, type GatewayResult, refuseLargeBody, toResult } from '../event.ts'
import { type ProxyResponse, toClientResponse } from './response.ts'
import { lookUpRouteOwner, refreshRouteOwner, type RouteOwner, negativeCacheMs } from './route-owner.ts'
import { type ProxyRequest, toModuleRequest } from './request.ts'
import { limit } from '../rate-limits.ts'
import { isPageNavigation, redirectToPortal } from '../portal/navigation.ts'
import { type WithVersionProbe, withVersionProbe } from '../version-probe.ts'
import { type HttpResponse, httpResponse } from '../response.ts'

/** Asks a deployment; throws `module_unavailable`, `module_timeout` or `module_failed`, the first where nothing has reached it. */
export type ModuleClient = (deployment: Deployment, request: ProxyRequest) => Promise<ProxyResponse>

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/**
 * One Lambda function that hands requests to modules (D48): it knows the caller, counts the call, and lets through what is on
 * its lists, there and back. Where no module answers a path nobody needs a token to hear so. Pages that a browser opens by
 * itself are shown by the portal, whatever module they are of.
 */
export function moduleProxy(ask: ModuleClient): WithVersionProbe<GatewayEvent, GatewayResult> {
  const app = createApp((it) => it.use(toHonoHandler((context) => perform(context, ask))))
  return withVersionProbe(async (event) => toResult(await app(event)))
}

/** The way of one request; what comes first is what a caller hears of, as it is with the platform's own endpoints. */
async function perform(context: HttpContext, ask: ModuleClient): Promise<HttpResponse> {
  const { event } = context.env
  if (isPageNavigation(event)) return redirectToPortal(event)
  const { rawPath } = event
  const { method, sourceIp: address } = event.requestContext.http
  const owner = methods.has(method) ? await lookUpRouteOwner(rawPath) : undefined
  if (owner === undefined) throw platformError('route_not_found')
  addLogFields({ moduleId: owner.moduleId })

  refuseLargeBody(event)
  const caller = await authenticate('user', event)
  addLogFields(identityOf(caller))
  if (caller?.kind !== 'user') throw platformError('unauthenticated')
  limit(context, { method: 'GET', path: rawPath, access: 'user' }, { caller, address, json: () => ({}) })
  const { moduleId } = owner
  const answer = await besideOthers(`${moduleId} ${caller.organisationId}`, ofOneOrganisation, () =>
    besideOthers(moduleId, atOnce, () => askOwner(ask, owner, event, caller)),
  )
  const { status, headers, body } = toClientResponse(answer, owner, rawPath)
  return httpResponse(status, body ?? null, headers)
}

/** Asks where the module is known to run; where nothing has reached it, once more where it runs by now. */
async function askOwner(
  ask: ModuleClient,
  owner: RouteOwner,
  event: GatewayEvent,
  caller: Caller,
): Promise<ProxyResponse> {
  const request = await toModuleRequest(event, owner.moduleId, caller)
  try {
    return await ask(deploymentOf(owner), request)
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'module_unavailable') throw error
    const current = await successorOf(owner, event.rawPath)
    if (current === undefined) throw error
    return ask(deploymentOf(current), request)
  }
}

/** Who answers instead of an owner that could not be reached. What was read just before may be from before that was so. */
async function successorOf({ claim }: RouteOwner, path: string): Promise<RouteOwner | undefined> {
  for (const pauseMs of [0, negativeCacheMs + 10]) {
    await delay(pauseMs)
    const current = await refreshRouteOwner(path)
    if (current === undefined) throw platformError('route_not_found')
    if (current.claim.deployment?.id !== claim.deployment?.id) return current
  }
  return undefined
}

function deploymentOf({ claim: { deployment } }: RouteOwner): Deployment {
  if (deployment === undefined) throw platformError('module_unavailable')
  return deployment
}

/** A module that does not answer must not use up what the others and the platform need: connections and memory. */
const atOnce = 100
/** One organisation that asks a slow module all the time must leave room for its neighbours. */
const ofOneOrganisation = 50
const besideOthers = bulkhead(() => platformError('module_unavailable', { retryAfterSeconds: 1 }))
