import * as z from 'zod'
import { localAccountId, localRegion } from '../http/environment.ts'

const Policy = z.object({
  Statement: z.array(
    z.object({
      Effect: z.literal('Allow'),
      Action: z.union([z.string(), z.array(z.string())]),
      Resource: z.union([z.string(), z.array(z.string())]),
    }),
  ),
})

const PolicyText = z
  .string()
  .max(2048)
  .transform((text): unknown => JSON.parse(text))
  .pipe(Policy)

/** The response of an AWS IoT custom authorizer. */
export const Authorization = z.discriminatedUnion('isAuthenticated', [
  z.object({ isAuthenticated: z.literal(false) }),
  z.object({
    isAuthenticated: z.literal(true),
    principalId: z.string().regex(/^[0-9A-Za-z]{1,128}$/),
    disconnectAfterInSeconds: z.int().min(300).max(86_400),
    refreshAfterInSeconds: z.int().min(300).max(86_400),
    policyDocuments: z.array(PolicyText).max(10),
  }),
])
export type Authorization = z.infer<typeof Authorization>
export type Policy = z.infer<typeof Policy>

export type IotAction = 'Connect' | 'Subscribe' | 'Receive' | 'Publish'

const resourceKinds = { Connect: 'client', Subscribe: 'topicfilter', Receive: 'topic', Publish: 'topic' } as const

/** Resources are compared exactly: the policies of the platform contain no wildcards. */
export function isAllowed(policies: readonly Policy[], action: IotAction, name: string): boolean {
  const resource = `arn:aws:iot:${localRegion}:${localAccountId}:${resourceKinds[action]}/${name}`
  return policies.some(({ Statement }) =>
    Statement.some(
      (statement) =>
        [statement.Action].flat().includes(`iot:${action}`) && [statement.Resource].flat().includes(resource),
    ),
  )
}
