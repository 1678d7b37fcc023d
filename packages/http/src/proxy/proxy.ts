import { setTimeout as delay } from 'node:timers/promises'
import type { Caller } from '@platform/core/caller'
import { bulkhead } from '@platform/core/lib/async'
import { PlatformError, platformError } from '@platform/core/error'
import { addLogFields } from '@platform/core/log'
import type { Deployment } from '@platform/core/modules/deployment'
import { isModulePath } from '@platform/core/modules/routes'
import { createApp, toHonoHandler } from '../app.ts'
import { authenticate, identityOf } from '../authorize.ts'
import type { HttpContext } from '../context.ts'
import { continueResponse, type GatewayEvent, rejectInvalidPath, rejectLargeBody } from '../request.ts'
import { modulePathOf } from './path.ts'
import { type ProxyResponse, toClientResponse, isPageNavigation, redirectToPortal } from './response.ts'
import { lookUpRouteOwner, refreshRouteOwner, type RouteOwner, negativeCacheMs } from './route-owner.ts'
import { type ProxyRequest, toModuleRequest } from './request.ts'
import { enforceRateLimit } from '../rate-limit.ts'
import { type WithVersionProbe, withVersionProbe } from '../version-probe.ts'
import { type HttpResponse, httpResponse, respondToOtherMethod, type GatewayResult, toResult } from '../response.ts'

/**
 * Sends a request to a deployment. Throws `module_unavailable` if the request did not reach it, otherwise
 * `module_timeout` or `module_failed`.
 */
export type ModuleClient = (deployment: Deployment, request: ProxyRequest) => Promise<ProxyResponse>

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Creates the handler of the Lambda function that forwards requests to modules. It authenticates the caller, applies
 * rate limits, and filters headers in both directions. Unknown paths return 404 without authentication. A browser navigation to a module
 * page is redirected to the portal.
 */
export function moduleProxy(send: ModuleClient): WithVersionProbe<GatewayEvent, GatewayResult> {
  const app = createApp((hono) => hono.use(toHonoHandler((context) => perform(context, send))), checkPath)
  return withVersionProbe(async (event) => toResult(await app(event)))
}

// Module paths follow the rules of `modulePathOf`.
const checkPath = (event: GatewayEvent): void =>
  isModulePath(event.rawPath) ? void modulePathOf(event) : rejectInvalidPath(event)

// The order of the checks decides which error a caller receives. It is the same as for the platform's own endpoints.
async function perform(context: HttpContext, send: ModuleClient): Promise<HttpResponse> {
  const { event } = context.env
  if (isPageNavigation(event)) return redirectToPortal(event)
  const { rawPath } = event
  const { method, sourceIp: address } = event.requestContext.http
  const owner = await lookUpRouteOwner(rawPath)
  if (owner === undefined) throw platformError('route_not_found')
  if (!methods.includes(method)) return respondToOtherMethod(method, methods)
  addLogFields({ moduleId: owner.moduleId })
  // The gateway removes `Upgrade`, so another header of the WebSocket handshake is checked.
  if (event.headers['sec-websocket-key'] !== undefined) throw platformError('upgrade_not_supported')

  rejectLargeBody(event, { access: 'user' })
  const caller = await authenticate('user', event)
  addLogFields(identityOf(caller))
  if (caller?.kind !== 'user') throw platformError('unauthenticated')
  if (event.isBodyPending) return continueResponse({ access: 'user' })
  await enforceRateLimit({ method: 'get', path: rawPath, access: 'user' }, { caller, address, json: () => ({}) })
  // Other methods may change data of the module, so rights that were read up to a minute ago are confirmed.
  if (method !== 'GET' && method !== 'HEAD') await caller.rights?.confirm()
  const { moduleId } = owner
  const response = await withBulkhead(`${moduleId} ${caller.organisationId}`, maxRequestsPerOrganisation, () =>
    withBulkhead(moduleId, maxRequestsPerModule, () => sendToOwner(send, owner, event, caller)),
  )
  const { status, headers, body } = toClientResponse(response, owner, modulePathOf(event))
  return httpResponse(status, body ?? null, headers)
}

// If the cached deployment is unreachable, an update may have replaced it, so the request is sent once more to its
// successor.
async function sendToOwner(
  send: ModuleClient,
  owner: RouteOwner,
  event: GatewayEvent,
  caller: Caller,
): Promise<ProxyResponse> {
  const request = await toModuleRequest(event, owner, caller)
  try {
    return await send(deploymentOf(owner), request)
  } catch (error) {
    if (!(error instanceof PlatformError) || error.code !== 'module_unavailable') throw error
    const currentOwner = await successorOf(owner, event.rawPath)
    if (currentOwner === undefined) throw error
    return send(deploymentOf(currentOwner), request)
  }
}

// The first read may return a cached result; the second read runs after that cache has expired.
async function successorOf({ claim }: RouteOwner, path: string): Promise<RouteOwner | undefined> {
  for (const pauseMs of [0, negativeCacheMs + 10]) {
    await delay(pauseMs)
    const currentOwner = await refreshRouteOwner(path)
    if (currentOwner === undefined) throw platformError('route_not_found')
    if (currentOwner.claim.deployment?.id !== claim.deployment?.id) return currentOwner
  }
  return undefined
}

function deploymentOf({ claim: { deployment } }: RouteOwner): Deployment {
  if (deployment === undefined) throw platformError('module_unavailable')
  return deployment
}

// Limits the connections and the memory that requests to a slow module can use in a process.
const maxRequestsPerModule = 100
// Lower than the limit of the module, so that one organisation cannot use all of it.
const maxRequestsPerOrganisation = 50
const withBulkhead = bulkhead(() => platformError('module_unavailable', { retryAfterSeconds: 1 }))
