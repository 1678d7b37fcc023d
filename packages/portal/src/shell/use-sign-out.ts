import { useNavigate } from '@tanstack/react-router'
import { endSession, forgetUser } from '../api/sign-in.ts'
import { showErrorToast } from '../ui/toast.tsx'

export function useSignOut(): () => void {
  const navigate = useNavigate()
  const leave = async () => {
    await endSession()
    await navigate({ to: '/sign-in' })
    // Only when no page that needs the data is rendered any more.
    forgetUser()
  }
  return () => void leave().catch((error: unknown) => showErrorToast('Failed to sign out', error))
}
