import { useNavigate } from '@tanstack/react-router'
import { endSession, forgetUser } from '../api/sign-in.ts'
import { showErrorToast } from '../ui/toast.tsx'

/** Signs out, and shows the sign-in. */
export function useSignOut(): () => void {
  const navigate = useNavigate()
  const leave = async () => {
    await endSession()
    await navigate({ to: '/sign-in' })
    // Only when nothing that needs it is shown any more.
    forgetUser()
  }
  return () => void leave().catch((error: unknown) => showErrorToast('You are still signed in', error))
}
