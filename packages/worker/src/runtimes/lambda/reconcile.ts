import {
  CreateFunctionCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { type FoundFunction, type LambdaControl } from './control.ts'
import { deploymentIdIn, descriptionOf } from './names.ts'
import { RuntimeError } from '../port.ts'

/** What `$LATEST` has to become before it is published. */
export interface DesiredState {
  functionName: string
  /** Of the deployment. */
  id: string
  moduleId: string
  /** By digest. */
  imageUri: string
  environment: Record<string, string>
}

/** It is being made or changed. */
export const isBusy = (found: FoundFunction | undefined): boolean =>
  found?.configuration.State === 'Pending' || found?.configuration.LastUpdateStatus === 'InProgress'

/** It could not be made or changed, and nobody is changing it. */
export function hasFailed(found: FoundFunction): boolean {
  const { State, LastUpdateStatus } = found.configuration
  return !isBusy(found) && (State === 'Failed' || LastUpdateStatus === 'Failed')
}

/** It is what is to be published. */
export const isReached = (found: FoundFunction, { imageUri, id }: DesiredState): boolean =>
  !isBusy(found) && !hasFailed(found) && found.imageUri === imageUri && deploymentIdIn(found.configuration) === id

/** What failed before may have been somebody else's; what fails after a change of ours will fail again. */
export function requireSuccess(found: FoundFunction): void {
  if (!hasFailed(found)) return
  const { StateReason, LastUpdateStatusReason = StateReason } = found.configuration
  throw new RuntimeError('refused', `Lambda cannot run the image: ${LastUpdateStatusReason ?? 'it does not say why'}`)
}

/** One step: the function, then its code, then its settings. Each waits for the one before. */
export async function reconcile(
  control: LambdaControl,
  goal: DesiredState,
  found: FoundFunction | undefined,
): Promise<void> {
  const { client } = control
  const { functionName: FunctionName, imageUri: ImageUri } = goal
  if (found === undefined) return createFunction(control, goal)
  const { RevisionId } = found.configuration
  if (found.imageUri !== ImageUri || hasFailed(found)) {
    const Architectures = architecturesOf(control)
    await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri, Architectures, RevisionId }))
    return
  }
  await client.send(new UpdateFunctionConfigurationCommand({ ...settingsOf(control, goal), RevisionId }))
}

async function createFunction(control: LambdaControl, goal: DesiredState): Promise<void> {
  const { imageUri: ImageUri, moduleId } = goal
  await control.client.send(
    new CreateFunctionCommand({
      ...settingsOf(control, goal),
      PackageType: 'Image',
      Code: { ImageUri },
      Architectures: architecturesOf(control),
      // By these an operator finds what no deployment of the platform has made.
      Tags: { 'platform:prefix': control.prefix, 'platform:module': moduleId },
    }),
  )
}

const settingsOf = (control: LambdaControl, { functionName, environment }: DesiredState) => ({
  FunctionName: functionName,
  Role: control.role,
  MemorySize: control.memoryMegabytes,
  Timeout: control.timeoutSeconds,
  Environment: { Variables: environment },
  ...(control.logGroup !== '' && { LoggingConfig: { LogGroup: control.logGroup } }),
})

const architecturesOf = ({ images }: LambdaControl): ('arm64' | 'x86_64')[] => [
  images.platform.architecture === 'arm64' ? 'arm64' : 'x86_64',
]

/** Publishes exactly what was found: where it has changed meanwhile, Lambda refuses. */
export async function publishLatest(
  control: LambdaControl,
  goal: DesiredState,
  { configuration }: FoundFunction,
): Promise<string> {
  const { RevisionId, CodeSha256 } = configuration
  const Description = descriptionOf(goal.id)
  const { functionName: FunctionName } = goal
  const answer = await control.client.send(
    new PublishVersionCommand({ FunctionName, Description, RevisionId, CodeSha256 }),
  )
  return answer.Version ?? ''
}
