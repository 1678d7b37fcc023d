import { version } from '@platform/contract/manifest'
import * as z from 'zod'

/**
 * The protocol between functions and the one-machine platform that replaces them: HTTP on loopback, with a token that
 * the platform generates at startup. Each call implements a method of `UpdateTarget`, or a part of `stage`, and is
 * idempotent.
 *
 * | call             | body                            | response                                                |
 * | ---------------- | ------------------------------- | ------------------------------------------------------- |
 * | GET /current     |                                 | 200 `Installed`                                         |
 * | POST /stage      | `StageRequest`                  | 200 `StageAnswer`: the functions to be sent             |
 * | PUT /function    | a zip, named by `FunctionQuery` | 204                                                     |
 * | POST /ready      | `StageRequest`                  | 204, once the release can serve                         |
 * | POST /invoke     | `InvokeRequest`                 | 200 `InvokeAnswer`                                      |
 * | POST /unanswered | `UnansweredRequest`             | 200 `UnansweredAnswer`, 204 for a missing release       |
 * | POST /shift      | `ShiftRequest`                  | 204                                                     |
 * | POST /commit     | `SwapRequest`                   | 204                                                     |
 * | POST /revert     | `SwapRequest`                   | 204                                                     |
 *
 * A failed call is 422 `HostFailure`; an invalid call is 400, 401, 404 or 413 without a body.
 */

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

const FunctionName = z
  .string()
  .max(100)
  .regex(/^[a-z-]+(?:\/[a-z-]+)?$/)

/** A release, or only the version of the release that the platform was deployed with. */
export const Installed = z.strictObject({
  version,
  repository: z.string().max(512).exactOptional(),
  digest: digest.exactOptional(),
})

export const StageRequest = z.strictObject({ release: Installed, functionNames: z.array(FunctionName).max(200) })

export const StageAnswer = z.object({ missing: z.array(FunctionName).max(200) })

export const FunctionQuery = z.strictObject({ version, digest, name: FunctionName })

export const InvokeRequest = z.strictObject({ release: Installed, functionName: FunctionName, event: z.json() })

export const InvokeAnswer = z.object({ result: z.unknown() })

export const UnansweredRequest = z.strictObject({ release: Installed, sinceMs: z.int().min(0) })

export const UnansweredAnswer = z.object({ faults: z.int().min(0), oldestMs: z.int().exactOptional() })

export const ShiftRequest = z.strictObject({
  release: Installed,
  share: z.union([z.literal(0), z.literal(10), z.literal(50), z.literal(100)]),
})

export const SwapRequest = z.strictObject({ release: Installed, before: Installed })

export const HostFailure = z.object({ message: z.string(), isFinal: z.boolean() })

export const maxZipBytes = 50 * 1024 * 1024
