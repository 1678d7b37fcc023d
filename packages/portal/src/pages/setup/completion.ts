import { api, unwrap, expectNoBody } from '../../api/client.ts'
import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'
import { type SetupForm, toRequest } from './answers.ts'

/** What the platform says to the wizard. A request that it refuses changes nothing, and never uses the token up (D2). */

const send = (body: SetupForm) => api.POST('/api/v1/setup/complete', { body })

const wrong = 'This is not the token. Get it again as shown above: a restart of the platform may have made another one.'
const expired =
  'The token has expired: it lives 24 hours. Restart the platform twice, which makes a new one, get that as shown above, and enter it.'
const lost =
  'No answer came, so that nobody knows yet whether setup is complete. Try again: nothing is done twice. If it was complete, the sign-in is shown.'

/** How one gets the token: a request without one is told. Throws what else the platform says. */
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
 * Has the platform look at the token and all other answers before the last step, by a request that lacks the password: the
 * token is checked first, the fields after it. Throws what is wrong.
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

/** Completes setup; answers the refresh token of the administrator's first session. */
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
