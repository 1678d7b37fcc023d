import { type FunctionConfiguration } from '@aws-sdk/client-lambda'
import { type InstalledRelease } from '@platform/core/updates/record'

/** What stands in Lambda of releases, so that nothing else has to keep it: each version of a function says which it is of. */

/** The name of a function of the platform in the cloud: `<prefix>-gateway-modules`. */
export const cloudNameOf = (prefix: string, functionName: string): string =>
  `${prefix}-${functionName.replaceAll('/', '-')}`

const pattern = /^platform (\S+) (sha256:[0-9a-f]{64})$/

/** The description of a version that is of a release; undefined for one that was deployed. */
export const labelOf = ({ version, digest }: InstalledRelease): string | undefined =>
  digest === undefined ? undefined : `platform ${version} ${digest}`

/** The release that a version says it is of; undefined where no update has made it. */
export function releaseIn({
  Description = '',
}: FunctionConfiguration): Required<Pick<InstalledRelease, 'version' | 'digest'>> | undefined {
  const [, version, digest] = pattern.exec(Description) ?? []
  return version === undefined || digest === undefined ? undefined : { version, digest }
}
