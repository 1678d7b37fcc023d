import { SetupStatus } from '@platform/contract/setup'

const exampleSetup = {
  platformName: 'My platform',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: 'admin',
  adminEmail: 'admin@example.com',
  adminPassword: 'choose-a-password',
}

/** What to do next with a platform that is not set up; nothing for one that is. */
export async function welcome(apiUrl: string): Promise<string[]> {
  const response = await fetch(`${apiUrl}/api/v1/setup/status`)
  const status = SetupStatus.safeParse(await response.json())
  if (!response.ok || !status.success || status.data.setupComplete) return []
  const body = JSON.stringify(exampleSetup).slice(0, -1)
  return [
    'Setup is not complete. This prints the initial admin token, in another terminal in this folder:',
    '  npm run -s admin-token',
    'This completes setup with it, once you have chosen the values:',
    `  curl ${apiUrl}/api/v1/setup/complete -H 'content-type: application/json' \\`,
    `    -d '${body},"initialAdminToken":"'"$(npm run -s admin-token)"'"}'`,
  ]
}
