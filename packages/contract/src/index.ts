import * as apiToken from './api-token.ts'
import * as audit from './audit.ts'
import * as auth from './auth.ts'
import * as batch from './batch.ts'
import * as browserSession from './browser-session.ts'
import * as catalog from './catalog.ts'
import * as cluster from './cluster.ts'
import type { EndpointDefinition } from './endpoint.ts'
import * as enrollmentKey from './enrollment-key.ts'
import * as event from './event.ts'
import * as health from './health.ts'
import * as history from './history.ts'
import * as identity from './identity.ts'
import * as job from './job.ts'
import * as jobGroup from './job-group.ts'
import * as jobOutput from './job-output.ts'
import * as meta from './meta.ts'
import * as module from './module.ts'
import * as notification from './notification.ts'
import * as organisation from './organisation.ts'
import * as platformSettings from './platform-settings.ts'
import * as portal from './portal.ts'
import * as preference from './preference.ts'
import * as relay from './relay.ts'
import * as relayUpdate from './relay-update.ts'
import * as session from './session.ts'
import * as setup from './setup.ts'
import * as signIn from './sign-in.ts'
import * as site from './site.ts'
import * as target from './target.ts'
import * as timeline from './timeline.ts'
import * as update from './update.ts'
import * as user from './user.ts'
import * as webhook from './webhook.ts'

/**
 * Function name → the files that declare its endpoints. Each function is one Lambda function and one file,
 * `functions/<name>.ts`. The route table contains every endpoint that these files export.
 */
export const filesByFunction = {
  health: [health],
  setup: [setup],
  auth: [auth, browserSession],
  clusters: [cluster, enrollmentKey, relayUpdate, target, timeline],
  sites: [site],
  jobs: [batch, job, jobGroup, jobOutput],
  preferences: [preference],
  users: [apiToken, session, user],
  webhooks: [webhook],
  platform: [organisation, platformSettings],
  identity: [identity, signIn],
  updates: [update],
  modules: [catalog, module],
  'portal-data': [history, portal],
  notifications: [notification],
  audit: [audit],
  relay: [relay],
  meta: [event, meta],
} as const satisfies Record<string, readonly object[]>

/** Name of a function that serves endpoints. */
export type FunctionName = keyof typeof filesByFunction

/** An endpoint with its function. `operationId` is the name of the endpoint's export. */
export interface Route {
  function: FunctionName
  operationId: string
  method: string
  endpoint: EndpointDefinition
}

const isFunction = (name: string): name is FunctionName => Object.hasOwn(filesByFunction, name)

const isEndpoint = (value: unknown): value is EndpointDefinition =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value

const methods = ['get', 'post', 'put', 'patch', 'delete']

// `{` sorts after letters, so literal segments come before parameters.
const sortKey = ({ endpoint: { path, method } }: Route): string => `${path} ${methods.indexOf(method)}`

const routesOf = (name: FunctionName): Route[] =>
  filesByFunction[name]
    .flatMap((file) => Object.entries<unknown>(file))
    .flatMap(([operationId, endpoint]) =>
      isEndpoint(endpoint) ? [{ function: name, operationId, method: endpoint.method.toUpperCase(), endpoint }] : [],
    )
    .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))

/**
 * The route table: all endpoints of the platform, for each function in the order of their paths. The gateways, grants,
 * OpenAPI document and table-driven tests are derived from it.
 */
export const routes: readonly Route[] = Object.keys(filesByFunction).filter(isFunction).flatMap(routesOf)

/** Each path with the function that serves all its methods. Gateways route by path, and functions by method. */
export const routePaths: readonly (readonly [path: string, functionName: FunctionName])[] = [
  ...new Map(routes.map((route) => [route.endpoint.path, route.function])),
]
