import { api, unwrap, expectNoBody } from '../../api/client.ts'
import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'
import { type SetupForm, toRequest } from './setup-form.ts'

// A rejected request changes nothing and leaves the token valid, so incomplete requests are safe as checks.

const send = (body: SetupForm) => api.POST('/api/v1/setup/complete', { body })

const wrongToken = 'The token is wrong. Get it again with the command above; a restart may have replaced it.'
const expiredToken =
  'The token expired after 24 hours. Restart the platform twice to create a new one, then get it with the command above.'
const noResponse =
  'The platform did not respond. Try again: nothing is done twice. If setup is already complete, the sign-in page opens.'

/**
 * Returns the command that prints the token. The API returns the command when the token is missing. Throws any other
 * error.
 */
export async function howToRetrieve(): Promise<string> {
  const emptyForm = { platformName: '', timezone: '', publicUrl: '', adminUsername: '', adminEmail: '' }
  try {
    await expectNoBody(send({ ...emptyForm, adminPassword: '', initialAdminToken: '' }))
  } catch (error) {
    if (error instanceof ApiError && typeof error.body['howToRetrieve'] === 'string') return error.body['howToRetrieve']
    throw error
  }
  // The platform never accepts an empty token, so a success is unexpected.
  throw new ApiError(200, {})
}

/**
 * Checks the token and the other fields before the last step. The request has no password, so it never completes setup.
 * Throws the error from the platform.
 */
export async function checkToken(form: SetupForm): Promise<void> {
  try {
    await expectNoBody(send({ ...toRequest(form), adminPassword: '' }))
  } catch (error) {
    const isOnlyPasswordInvalid =
      isApiError(error, 'validation_failed') && error.details.every(({ path }) => path === '/adminPassword')
    if (!isOnlyPasswordInvalid) throw explainError(error)
  }
}

/** Completes setup and returns the refresh token of the administrator's first session. */
export async function complete(form: SetupForm): Promise<string> {
  try {
    const { refreshToken } = await unwrap(send(toRequest(form)))
    return refreshToken
  } catch (error) {
    throw explainError(error)
  }
}

const tokenError = (error: ApiError, message: string): ApiError =>
  withMessage(error, message, [{ in: 'body', path: '/initialAdminToken', message }])

function explainError(error: unknown): unknown {
  if (isApiError(error, 'initial_admin_token_invalid')) return tokenError(error, wrongToken)
  if (isApiError(error, 'initial_admin_token_expired')) return tokenError(error, expiredToken)
  if (isApiError(error, 'unreachable')) return withMessage(error, noResponse)
  return error
}
