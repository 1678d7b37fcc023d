import * as z from 'zod'

/** The description of a deployment by the runtime that created it. Contains no secrets. */
export const Deployment = z.object({
  runtime: z.enum(['process', 'container', 'lambda']),
  isolation: z.string(),
  /** The caller chooses the id, so that a deployment can be repeated. */
  id: z.string(),
  moduleId: z.string(),
  version: z.string(),
  digest: z.string(),
  handle: z.string(),
})
export type Deployment = z.infer<typeof Deployment>
