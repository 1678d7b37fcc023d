import * as z from 'zod'

const Statement = z.strictObject({
  Effect: z.literal('Allow'),
  Action: z.array(z.string()),
  Resource: z.array(z.string()),
})
export type Statement = z.infer<typeof Statement>

const Policy = z.strictObject({ Version: z.literal('2012-10-17'), Statement: z.array(Statement) })

/** Parses a policy. Throws if it uses features that the simulator does not support. */
export const parsePolicy = (text: string): Statement[] => Policy.parse(JSON.parse(text)).Statement

export interface RequiredPermission {
  action: string
  resource: string
}

const pattern = (text: string): RegExp =>
  new RegExp(
    `^${text
      .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  )

const matches = (patterns: readonly string[], text: string): boolean =>
  patterns.some((each) => pattern(each).test(text))

export const allowing = (
  statements: readonly Statement[],
  { action, resource }: RequiredPermission,
): Statement | undefined =>
  statements.find(({ Action, Resource }) => matches(Action, action) && matches(Resource, resource))
