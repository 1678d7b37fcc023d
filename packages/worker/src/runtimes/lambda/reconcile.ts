import {
  CreateFunctionCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { type FoundFunction, type ModuleControl } from './control.ts'
import { deploymentIdIn, descriptionOf } from './names.ts'
import { RuntimeError } from '../port.ts'

/** The desired state of `$LATEST` before it is published. */
export interface DesiredState {
  functionName: string
  /** The deployment id. */
  id: string
  moduleId: string
  /** By digest. */
  imageUri: string
  environment: Record<string, string>
}

/** The function is being created or changed. */
export const isBusy = (found: FoundFunction | undefined): boolean =>
  found?.configuration.State === 'Pending' || found?.configuration.LastUpdateStatus === 'InProgress'

/** The creation or change has failed, and no other is in progress. */
export function hasFailed(found: FoundFunction): boolean {
  const { State, LastUpdateStatus } = found.configuration
  return !isBusy(found) && (State === 'Failed' || LastUpdateStatus === 'Failed')
}

/** The function has the desired state and can be published. */
export const isReached = (found: FoundFunction, { imageUri, id }: DesiredState): boolean =>
  !isBusy(found) && !hasFailed(found) && found.imageUri === imageUri && deploymentIdIn(found.configuration) === id

/** An earlier failure may have another cause; a failure after a change by this attempt is permanent. */
export function requireSuccess(found: FoundFunction): void {
  if (!hasFailed(found)) return
  const { StateReason, LastUpdateStatusReason = StateReason } = found.configuration
  throw new RuntimeError('refused', `Lambda cannot run the image: ${LastUpdateStatusReason ?? 'it does not say why'}`)
}

/** Performs one step: the function, then its code, then its settings. Each waits for the previous one. */
export async function reconcile(
  control: ModuleControl,
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

async function createFunction(control: ModuleControl, goal: DesiredState): Promise<void> {
  const { imageUri: ImageUri, moduleId } = goal
  await control.client.send(
    new CreateFunctionCommand({
      ...settingsOf(control, goal),
      PackageType: 'Image',
      Code: { ImageUri },
      Architectures: architecturesOf(control),
      // Operators find functions by these tags, because the platform's own deployment does not include them.
      Tags: { 'platform:prefix': control.prefix, 'platform:module': moduleId },
    }),
  )
}

const settingsOf = (control: ModuleControl, { functionName, environment }: DesiredState) => ({
  FunctionName: functionName,
  Role: control.role,
  MemorySize: control.memoryMegabytes,
  Timeout: control.timeoutSeconds,
  Environment: { Variables: environment },
  ...(control.logGroup !== '' && { LoggingConfig: { LogGroup: control.logGroup } }),
})

const architecturesOf = ({ images }: ModuleControl): ('arm64' | 'x86_64')[] => [
  images.platform.architecture === 'arm64' ? 'arm64' : 'x86_64',
]

/** Publishes exactly the revision that was found: Lambda refuses if it has changed. */
export async function publishLatest(
  control: ModuleControl,
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
