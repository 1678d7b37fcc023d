import {
  CreateFunctionCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { type FunctionState, type ModuleLambdaContext } from './control.ts'
import { deploymentIdIn, descriptionOf } from './names.ts'
import { RuntimeError } from '../port.ts'

/** The state of `$LATEST` before it is published. */
export interface DesiredState {
  functionName: string
  id: string
  moduleId: string
  /** Refers to the image by digest. */
  imageUri: string
  environment: Record<string, string>
}

export const isBusy = (currentState: FunctionState | undefined): boolean =>
  currentState?.configuration.State === 'Pending' || currentState?.configuration.LastUpdateStatus === 'InProgress'

/** Whether the last creation or change has failed and no other is in progress. */
export function hasFailed(currentState: FunctionState): boolean {
  const { State, LastUpdateStatus } = currentState.configuration
  return !isBusy(currentState) && (State === 'Failed' || LastUpdateStatus === 'Failed')
}

export const isReached = (currentState: FunctionState, { imageUri, id }: DesiredState): boolean =>
  !isBusy(currentState) &&
  !hasFailed(currentState) &&
  currentState.imageUri === imageUri &&
  deploymentIdIn(currentState.configuration) === id

/**
 * Throws `RuntimeError` (`refused`) if the last change has failed. During publication, it is called only after a change
 * by this attempt, because an earlier failure may have another cause.
 */
export function requireSuccess(currentState: FunctionState): void {
  if (!hasFailed(currentState)) return
  const { StateReason, LastUpdateStatusReason = StateReason } = currentState.configuration
  throw new RuntimeError('refused', `Lambda cannot run the image: ${LastUpdateStatusReason ?? 'no reason reported'}`)
}

/** Performs only the next step, because Lambda applies one change at a time: the function, its code, its settings. */
export async function reconcile(
  control: ModuleLambdaContext,
  desiredState: DesiredState,
  currentState: FunctionState | undefined,
): Promise<void> {
  const { client } = control
  const { functionName: FunctionName, imageUri: ImageUri } = desiredState
  if (currentState === undefined) return createFunction(control, desiredState)
  const { RevisionId } = currentState.configuration
  if (currentState.imageUri !== ImageUri || hasFailed(currentState)) {
    const Architectures = architecturesOf(control)
    await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri, Architectures, RevisionId }))
    return
  }
  await client.send(new UpdateFunctionConfigurationCommand({ ...settingsOf(control, desiredState), RevisionId }))
}

async function createFunction(control: ModuleLambdaContext, desiredState: DesiredState): Promise<void> {
  const { imageUri: ImageUri, moduleId } = desiredState
  await control.client.send(
    new CreateFunctionCommand({
      ...settingsOf(control, desiredState),
      PackageType: 'Image',
      Code: { ImageUri },
      Architectures: architecturesOf(control),
      // Operators find functions by these tags, because the platform's own deployment does not include them.
      Tags: { 'platform:prefix': control.prefix, 'platform:module': moduleId },
    }),
  )
}

const settingsOf = (control: ModuleLambdaContext, { functionName, environment }: DesiredState) => ({
  FunctionName: functionName,
  Role: control.role,
  MemorySize: control.memoryMegabytes,
  Timeout: control.timeoutSeconds,
  Environment: { Variables: environment },
  ...(control.logGroup !== '' && { LoggingConfig: { LogGroup: control.logGroup } }),
})

const architecturesOf = ({ images }: ModuleLambdaContext): ('arm64' | 'x86_64')[] => [
  images.platform.architecture === 'arm64' ? 'arm64' : 'x86_64',
]

/** Publishes exactly the revision that was read: Lambda refuses if it has changed. */
export async function publishLatest(
  control: ModuleLambdaContext,
  desiredState: DesiredState,
  { configuration }: FunctionState,
): Promise<string> {
  const { RevisionId, CodeSha256 } = configuration
  const Description = descriptionOf(desiredState.id)
  const { functionName: FunctionName } = desiredState
  const response = await control.client.send(
    new PublishVersionCommand({ FunctionName, Description, RevisionId, CodeSha256 }),
  )
  return response.Version ?? ''
}
