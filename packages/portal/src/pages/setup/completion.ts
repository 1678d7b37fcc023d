import { api, unwrap, expectNoBody } from '../../api/client.ts'
import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'
import { type SetupForm, toRequest } from './answers.ts'

/** A rejected request changes nothing and does not consume the token. */

const send = (body: SetupForm) => api.POST('/api/v1/setup/complete', { body })

const wrong = 'The token is wrong. Get it again with the command above; a restart may have replaced it.'
const expired =
  'The token expired after 24 hours. Restart the platform twice to create a new one, then get it with the command above.'
const lost =
  'The platform did not respond. Try again: nothing is done twice. If setup is already complete, the sign-in page opens.'

/** The command that prints the token, which the API returns for a request without one. Throws other errors. */
export async function howToRetrieve(): Promise<string> {
  const nothing = { platformName: '', timezone: '', publicUrl: '', adminUsername: '', adminEmail: '' }
  try {
    await expectNoBody(send({ ...nothing, adminPassword: '', initialAdminToken: '' }))
  } catch (error) {
    if (error instanceof ApiError && typeof error.body['howToRetrieve'] === 'string') return error.body['howToRetrieve']
    throw error
  }
  // A token is never empty.
  throw new ApiError(200, {})
}

/**
 * Validates token and fields before the last step with a request that lacks the password: the platform checks the token
 * first. Throws the error.
 */
export async function checkToken(answers: SetupForm): Promise<void> {
  try {
    await expectNoBody(send({ ...toRequest(answers), adminPassword: '' }))
  } catch (error) {
    const isAllElseFit =
      isApiError(error, 'validation_failed') && error.details.every(({ path }) => path === '/adminPassword')
    if (!isAllElseFit) throw inPlainWords(error)
  }
}

/** Completes setup; returns the refresh token of the administrator's first session. */
export async function complete(answers: SetupForm): Promise<string> {
  try {
    const { refreshToken } = await unwrap(send(toRequest(answers)))
    return refreshToken
  } catch (error) {
    throw inPlainWords(error)
  }
}

const ofToken = (fault: ApiError, message: string): ApiError =>
  withMessage(fault, message, [{ in: 'body', path: '/initialAdminToken', message }])

function inPlainWords(error: unknown): unknown {
  if (isApiError(error, 'initial_admin_token_invalid')) return ofToken(error, wrong)
  if (isApiError(error, 'initial_admin_token_expired')) return ofToken(error, expired)
  if (isApiError(error, 'unreachable')) return withMessage(error, lost)
  return error
}
