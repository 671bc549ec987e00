"""Heat, clocks and the power supply

What is normal
    A busy GPU is warm, lowers its clocks a little, and reports "SW Power Cap: Active": it works at its power limit, as
    it should. An idle one is at low clocks and at a slow PCIe link. None of it is a fault.

What is not
    - A thermal slowdown reason (SW or HW Thermal Slowdown): the card is slower because it is too hot. Dust, airflow,
      a blocked fan, a passive server card in a desktop case, or the memory's temperature, which is higher than the
      core's.
    - HW Power Brake, or HW Slowdown without heat: the supply or the cable could not deliver, and the card was told so.
    - The card is gone (Xid 79), or the machine restarts, as soon as the load begins: first suspect supply and cables.
      A card's peaks last milliseconds and are well above its limit, so a supply that is large enough on paper may
      fall short. A lower limit (sudo nvidia-smi -pl WATTS) tells: if the fault goes away, it was the power.
    - Clocks that stay at the lowest state under full load: a power cable that is not seated, or a laptop on battery.

How to look
    nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER while it works. Idle values tell nothing.

References
    https://docs.nvidia.com/deploy/nvidia-smi/
"""
