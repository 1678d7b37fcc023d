import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useState } from 'react'
import { configurationQuery } from '../../api/account.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { queries } from '../../api/query.ts'
import { signIn } from '../../api/sign-in.ts'
import { getPreference, setPreference } from '../../lib/preferences.ts'
import type { FormValues } from '../../ui/form.tsx'
import { initialForm, mergeValues, type SetupForm, withoutSecrets } from './setup-form.ts'
import { checkToken, complete, howToRetrieve } from './completion.ts'
import { reachableStep, rejectedStep, stepFrom, type StepName } from './steps.ts'

const draftName = 'setup'
const draftSeconds = 7 * 24 * 3600

function readDraft(): Record<string, unknown> {
  try {
    const draft: unknown = JSON.parse(getPreference(draftName) ?? '{}')
    return typeof draft === 'object' && draft !== null ? { ...draft } : {}
  } catch {
    return {}
  }
}

function forgetSetup(): void {
  setPreference(draftName, undefined)
  queries.removeQueries({ queryKey: configurationQuery.queryKey })
}

export interface Setup {
  step: StepName
  /** Whether a later step was requested but this one is incomplete. */
  isRedirected: boolean
  form: SetupForm
  passwordConfirmation: string
  setPasswordConfirmation: (typed: string) => void
  /** The error from the platform for this step. */
  failure: unknown
  hint: UseQueryResult<string>
  update: (values: Partial<SetupForm>) => void
  /** Continues with the values of the form. Throws the error from the platform. */
  next: (values: FormValues) => Promise<void>
  back: () => void
}

/** State of the wizard. All values except secrets are stored in a cookie until setup is complete, for at most seven days. */
export function useSetup(): Setup {
  const [draft] = useState(readDraft)
  const [form, setForm] = useState(() => initialForm(draft))
  const [passwordConfirmation, setPasswordConfirmation] = useState('')
  const [rejection, setRejection] = useState<{ step: StepName; error: unknown }>()
  const navigate = useNavigate()
  const { step: requestedStep } = useSearch({ from: '/setup' })
  const requestedName = requestedStep ?? (typeof draft['step'] === 'string' ? draft['step'] : undefined)
  const step = reachableStep(requestedName, form)
  useStoredDraft(form, step)

  const show = (name: StepName) => navigate({ to: '/setup', search: { step: name } })
  const goToSignIn = async () => {
    forgetSetup()
    await navigate({ to: '/sign-in', search: { notice: 'setup-complete' }, replace: true })
  }
  const isHinted = step === 'welcome' || step === 'token'
  const hint = useQuery({ queryKey: ['setup', 'hint'], queryFn: howToRetrieve, staleTime: Infinity, enabled: isHinted })
  const isComplete = isApiError(hint.error, 'setup_already_complete')
  const onComplete = useEffectEvent(() => void goToSignIn())
  useEffect(() => {
    if (isComplete) onComplete()
  }, [isComplete])
  const finish = async (completeForm: SetupForm) => {
    const refreshToken = await complete(completeForm)
    forgetSetup()
    try {
      await signIn({ refreshToken })
    } catch {
      // Setup is complete, so the user can sign in with the password.
      return goToSignIn()
    }
    return navigate({ to: '/dashboard', replace: true })
  }
  const next = async (values: FormValues) => {
    const newForm = mergeValues(form, values)
    setForm(newForm)
    setRejection(undefined)
    try {
      if (step === 'token') await checkToken(newForm)
      await (step === 'review' ? finish(newForm) : show(stepFrom(step, 1)))
    } catch (error) {
      if (isApiError(error, 'setup_already_complete')) return goToSignIn()
      const rejectedStepName = error instanceof ApiError ? rejectedStep(error) : undefined
      if (rejectedStepName === undefined || rejectedStepName === step) throw error
      setRejection({ step: rejectedStepName, error })
      await show(rejectedStepName)
    }
  }
  return {
    step,
    isRedirected: step !== requestedName && requestedName !== undefined,
    form,
    passwordConfirmation,
    setPasswordConfirmation,
    hint,
    failure: rejection?.step === step ? rejection.error : undefined,
    update: (values) => setForm((before) => ({ ...before, ...values })),
    next,
    back: () => void show(stepFrom(step, -1)),
  }
}

function useStoredDraft(form: SetupForm, step: StepName): void {
  const draft = JSON.stringify({ step, ...withoutSecrets(form) })
  useEffect(() => setPreference(draftName, draft, draftSeconds), [draft])
}
