"""The task of the Windows Task Scheduler, as text. Written from its documentation and never tried by us."""

import subprocess
from xml.sax.saxutils import escape

from holdfast.install.description import Service

# The scheduler knows nothing shorter.
RETRY = "PT1M"
# What `schtasks` reads; the declaration must name what the bytes are.
ENCODING = "utf-16"


def task(service: Service) -> str:
    """A task has no variables of its own: the stop timeout is the default, and settings stand in config.toml."""
    program, *arguments = service.command
    logon = "S4U" if service.user else "InteractiveToken"
    who = f"\n      <UserId>{escape(service.user)}</UserId>" if service.user else ""
    trigger = "BootTrigger" if service.user else "LogonTrigger"
    return f"""<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Holdfast, an AI agent behind chats and a web page</Description>
    <URI>\\{escape(service.name)}</URI>
  </RegistrationInfo>
  <Triggers>
    <{trigger}>
      <Enabled>true</Enabled>
    </{trigger}>
  </Triggers>
  <Principals>
    <Principal id="Author">{who}
      <LogonType>{logon}</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>{RETRY}</Interval>
      <Count>999</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{escape(program)}</Command>
      <Arguments>{escape(subprocess.list2cmdline(arguments))}</Arguments>
      <WorkingDirectory>{escape(service.folder)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""
