import {
  CreateFunctionCommand,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import type { FunctionState, ModuleLambdaContext } from './control.ts'
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

export const isBusy = (state: FunctionState | undefined): boolean =>
  state?.configuration.State === 'Pending' || state?.configuration.LastUpdateStatus === 'InProgress'

/** Whether the last creation or change has failed and no other is in progress. */
export function hasFailed(state: FunctionState): boolean {
  const { State, LastUpdateStatus } = state.configuration
  return !isBusy(state) && (State === 'Failed' || LastUpdateStatus === 'Failed')
}

export const isReached = (state: FunctionState, { imageUri, id }: DesiredState): boolean =>
  !isBusy(state) && !hasFailed(state) && state.imageUri === imageUri && deploymentIdIn(state.configuration) === id

/**
 * Throws `RuntimeError` (`refused`) if the last change has failed. During publication, it is called only after a change
 * by this attempt, because an earlier failure may have another cause.
 */
export function requireSuccess(state: FunctionState): void {
  if (!hasFailed(state)) return
  const { StateReason, LastUpdateStatusReason = StateReason } = state.configuration
  throw new RuntimeError('refused', `Lambda cannot run the image: ${LastUpdateStatusReason ?? 'no reason reported'}`)
}

/** Performs only the next step, because Lambda applies one change at a time: the function, its code, its settings. */
export async function reconcile(
  control: ModuleLambdaContext,
  desired: DesiredState,
  state: FunctionState | undefined,
): Promise<void> {
  const { client } = control
  const { functionName: FunctionName, imageUri: ImageUri } = desired
  if (state === undefined) return createFunction(control, desired)
  const { RevisionId } = state.configuration
  if (state.imageUri !== ImageUri || hasFailed(state)) {
    const Architectures = architecturesOf(control)
    await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri, Architectures, RevisionId }))
    return
  }
  await client.send(new UpdateFunctionConfigurationCommand({ ...settingsOf(control, desired), RevisionId }))
}

async function createFunction(control: ModuleLambdaContext, desired: DesiredState): Promise<void> {
  const { imageUri: ImageUri, moduleId } = desired
  await control.client.send(
    new CreateFunctionCommand({
      ...settingsOf(control, desired),
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
  desired: DesiredState,
  { configuration }: FunctionState,
): Promise<string> {
  const { RevisionId, CodeSha256 } = configuration
  const Description = descriptionOf(desired.id)
  const { functionName: FunctionName } = desired
  const response = await control.client.send(
    new PublishVersionCommand({ FunctionName, Description, RevisionId, CodeSha256 }),
  )
  return response.Version ?? ''
}
