import { Deployment } from '@platform/core/modules/deployment'
import * as z from 'zod'

/**
 * The protocol between functions and the module host of a one-machine platform: JSON over HTTP on loopback, with a
 * token that the host generates at startup. Modules are called without the host, on their own sockets.
 *
 * | call           | body            | response                                        |
 * | -------------- | --------------- | ----------------------------------------------- |
 * | POST /deploy   | `DeployRequest` | 200 `Deployment`                                |
 * | POST /remove   | `RemoveRequest` | 204                                             |
 * | GET /list      |                 | 200 `StatusList`                                |
 * | POST /tidy     | `TidyRequest`   | 204                                             |
 *
 * A runtime error is 422 `HostFailure`; an invalid request is 400, 401 or 404 without a body.
 */

const Spec = z.strictObject({
  id: z.string().min(1).max(200),
  moduleId: z.string().min(1).max(200),
  version: z.string().max(200),
  repository: z.string().max(512),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  organisationId: z.string().max(200),
  startsItself: z.boolean(),
  mayRunAsProcess: z.boolean().default(false),
})

/** The token is derived from a secret that the host does not know. */
export const DeployRequest = z.strictObject({ spec: Spec, token: z.string().min(1).max(200) })

export const RemoveRequest = z.strictObject({ deployment: Deployment, graceMs: z.number().min(0).max(900_000) })

export const TidyRequest = z.strictObject({ digests: z.array(z.string().max(200)).max(10_000) })

export const StatusList = z.object({
  items: z.array(
    z.object({
      deployment: Deployment,
      state: z.enum(['running', 'restarting', 'failed']),
      crashes: z.number(),
      lastCrash: z.string().exactOptional(),
    }),
  ),
})

export const HostFailure = z.object({
  problem: z.enum(['unavailable', 'timeout', 'crashed', 'init_failed', 'too_large', 'refused']),
  message: z.string(),
})
