import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useState } from 'react'
import { meQuery } from '../../api/account.ts'
import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { signIn, type SignInProof } from '../../api/sign-in.ts'
import { language } from '../../lib/language.ts'
import { withoutUndefined } from '../../lib/search.ts'
import { showToast } from '../../ui/toast.tsx'
import { safeReturnPath } from './return-path.ts'

// A code works only once, and React may run an effect twice.
const exchangedCodes = new Set<string>()

export type SignInState = ReturnType<typeof useSignIn>

/**
 * Signs in with the code in the URL, an existing session, or the form. If the code has expired or was used, continues
 * with an existing session, because another tab may have signed in.
 */
export function useSignIn() {
  const search = useSearch({ from: '/sign-in' })
  const navigate = useNavigate()
  const [{ code, error, traceId }] = useState(search)
  const [failure, setFailure] = useState<unknown>(() => error && providerFailure(error, traceId))
  const [isExchanging, setIsExchanging] = useState(code !== undefined || error === 'sign_in_expired')
  const returnTo = safeReturnPath(search.returnTo)

  const continueToPage = () => navigate({ href: returnTo ?? '/dashboard', replace: true })
  const openSession = async (proof: SignInProof) => {
    try {
      const notice = await signIn(proof)
      if (notice !== undefined) showToast(notice)
    } catch (failure) {
      throw withTimeToRetry(failure)
    }
    await continueToPage()
  }
  const signInWithPassword = async (proof: SignInProof) => {
    setFailure(undefined)
    await openSession(proof)
  }
  const exchangeCode = async (signInCode: string) => {
    if (exchangedCodes.has(signInCode)) return
    exchangedCodes.add(signInCode)
    await navigate({ to: '/sign-in', search: withoutUndefined({ returnTo: search.returnTo }), replace: true })
    await openSession({ code: signInCode }).catch(async (failure: unknown) => {
      setFailure(failure)
      if (isApiError(failure, 'sign_in_code_invalid')) await continueIfSignedIn()
      else setIsExchanging(false)
    })
  }
  const continueIfSignedIn = async () => {
    // Cached state means that the user was just redirected here and has no session.
    const isUnknown = queries.getQueryState(meQuery.queryKey) === undefined
    const me = isUnknown ? await queries.fetchQuery(meQuery).catch(() => undefined) : undefined
    if (me !== undefined) await continueToPage()
    else setIsExchanging(false)
  }
  const onMount = useEffectEvent(() => {
    if (code !== undefined) void exchangeCode(code)
    else if (error === undefined || error === 'sign_in_expired') void continueIfSignedIn()
  })
  useEffect(() => onMount(), [])
  return { signInWithPassword, failure: isExchanging ? undefined : failure, returnTo, isExchanging }
}

const providerMessages: Readonly<Record<string, string>> = {
  sign_in_expired: 'The sign-in expired or was started in another browser. Start again.',
  provider_unavailable: 'This provider is disabled. Choose another one or contact an administrator.',
  provider_unreachable: 'The identity provider is unreachable. Try again shortly or choose another one.',
  provider_error: 'The identity provider could not sign you in. Try again; if it persists, contact an administrator.',
  access_denied: 'The identity provider denied access, or you cancelled the sign-in.',
  answer_invalid:
    'The identity provider’s response could not be verified. Try again; if it persists, contact an administrator.',
  groups_incomplete:
    'The identity provider did not send all of your groups, so you cannot be registered. Contact an administrator.',
  internal_error: 'The platform failed unexpectedly. Try again; if it persists, report the trace id.',
}

const unknownFailure = 'The sign-in with the identity provider failed. Try again.'

// The URL may be forged, so unknown codes and malformed trace ids are not shown.
function providerFailure(code: string, traceId: string | undefined): ApiError {
  const message = Object.hasOwn(providerMessages, code) ? providerMessages[code] : unknownFailure
  return new ApiError(0, { error: 'sign_in_failed', message, ...(isTraceId(traceId) && { traceId }) })
}

const isTraceId = (text: string | undefined): boolean => text !== undefined && /^[\w-]{8,64}$/.test(text)

const timeFormat = new Intl.DateTimeFormat(language, { timeStyle: 'medium' })

// Adds the time of the next possible attempt to a rate limit error. Returns other errors unchanged.
export function withTimeToRetry(error: unknown): unknown {
  if (!isApiError(error, 'rate_limited') || error.retryAfterSeconds === undefined) return error
  const timeText = timeFormat.format(Date.now() + error.retryAfterSeconds * 1000)
  return withMessage(error, `Too many attempts. Try again in ${error.retryAfterSeconds} seconds, at ${timeText}.`)
}
