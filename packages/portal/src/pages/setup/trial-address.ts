/** The address that the wizard proposes. It works on the machine of the platform only. */
export const trialAddress = 'https://localhost'

export const isTrialAddress = (address: string): boolean => URL.parse(address)?.hostname === 'localhost'
