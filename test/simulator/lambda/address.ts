import { AwsServiceError } from '@platform/local/emulators/http/error'
import { localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { invalidValue } from './refusals.ts'

/** The mutable revision that invocations without a qualifier run. */
export const latestVersion = '$LATEST'

export interface Address {
  name: string
  qualifier: string | undefined
}

const pattern =
  /^(?:(?:arn:aws:lambda:[a-z0-9-]+:)?\d{12}:function:)?(?<name>[\w-]{1,64})(?::(?<qualifier>\$LATEST|[\w-]{1,128}))?$/

/** Parses a function name or ARN, complete or partial; the qualifier may be separate. */
export function addressOf(text: string, beside?: string): Address {
  const groups = pattern.exec(text)?.groups
  if (groups === undefined) {
    throw new AwsServiceError(
      'ValidationException',
      `${JSON.stringify(text)} at 'functionName' is not a function name.`,
    )
  }
  const { name = '', qualifier } = groups
  if (qualifier !== undefined && beside !== undefined && qualifier !== beside) {
    throw invalidValue('The qualifier in the ARN differs from the separate one.')
  }
  return { name, qualifier: qualifier ?? beside }
}

export const arnOf = (name: string, qualifier?: string): string =>
  `arn:aws:lambda:${localRegion}:${localAccountId}:function:${name}${qualifier === undefined ? '' : `:${qualifier}`}`
